import { z } from 'zod';
import { createConfinement } from './confine.ts';
import type { Sink } from './sink.ts';

/*
 * The module of a custom sink may return anything. What it declares is checked once, when the sink is made, and whatever
 * its calls throw, then or later, fails this sink alone.
 */

const call = z.custom<unknown>((value) => typeof value === 'function', 'expected a function');
const optionalCall = call.optional();

const sinkSchema = z.strictObject({
  batch: z.strictObject({
    events: z.int().min(1).max(100_000),
    chars: z.int().min(1).max(100_000_000),
  }),
  open: call,
  fillBegins: optionalCall,
  fillEnds: optionalCall,
  recheck: optionalCall,
  size: optionalCall,
  deliver: call,
  close: call,
  check: call,
} satisfies Record<keyof Sink, z.ZodType>);

const CALLS = Object.keys(sinkSchema.shape).filter((name) => name !== 'batch');

/** @throws Error that lists everything that is wrong with what `createSink` returned */
function checkDeclared(made: unknown): asserts made is Sink {
  const isPlain = made === null || typeof made !== 'object' || Object.getPrototypeOf(made) === Object.prototype;
  // An object of a class may have members of its own.
  const { error } = (isPlain ? sinkSchema : sinkSchema.loose()).safeParse(made);
  if (error === undefined) return;
  const problems = error.issues.map(({ path, message }) => [path.join('.'), message].filter(Boolean).join(': '));
  throw new Error(`createSink returned an invalid sink: ${problems.join('; ')}`);
}

/**
 * Makes a sink whose failures stay its own. An error that escapes from its driver fails the running call and every later
 * one, and closes it; `close` is called once.
 * @throws what `create` throws; Error if what it returns is not a sink
 */
export async function ownSink(create: () => unknown): Promise<Sink> {
  let closing: Promise<void> | undefined;
  let sink: Sink | undefined;

  function close(): Promise<void> {
    closing ??= spared(() => sink?.close());
    return closing;
  }

  const { confined, spared } = createConfinement(() => void close().catch(() => {}));
  const made = await confined(create);
  checkDeclared(made);
  sink = made;
  const members = made as unknown as Record<string, ((...args: unknown[]) => unknown) | undefined>;
  const calls = CALLS.filter((name) => members[name] !== undefined).map((name) => [
    name,
    (...args: unknown[]) => confined(() => members[name]?.apply(made, args)),
  ]);
  // A copy: what was checked cannot change.
  return { ...(Object.fromEntries(calls) as Sink), batch: { ...made.batch }, close };
}
