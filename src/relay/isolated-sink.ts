import { type Hide, masked } from '@catchword/base/redact';
import type { Sink } from '@catchword/sink-kit/sink';
import { withTimeout } from '@catchword/sink-kit/with-timeout';
import { type Listed, wrapListed } from '@catchword/sink-kit/wrap-listed';
import * as z from 'zod';
import { createErrorBoundary } from './error-boundary.ts';

/*
 * The module of a custom sink may return anything. What it declares is checked once, when the sink is made, and whatever
 * its calls throw, then or later, fails this sink alone.
 */

/** How long a module may take to make a sink, and a sink to close; milliseconds. */
const CREATE_TIMEOUT_MS = 10_000;
const CLOSE_TIMEOUT_MS = 5_000;

const call = z.custom<unknown>((value) => typeof value === 'function', 'expected a function');
const optionalCall = call.optional();

const sinkSchema = z.strictObject({
  batch: z.strictObject({
    events: z.int().min(1).max(100_000),
    chars: z.int().min(1).max(100_000_000),
  }),
  open: call,
  recheck: optionalCall,
  size: optionalCall,
  deliver: call,
  deliverLines: optionalCall,
  prepareNext: optionalCall,
  list: optionalCall,
  digests: z
    .looseObject({ digestOf: call, compares: optionalCall, sums: optionalCall, differences: optionalCall })
    .optional(),
  apply: optionalCall,
  drop: optionalCall,
  close: call,
  check: call,
} satisfies Record<keyof Sink, z.ZodType>);

const LISTED: ReadonlySet<string> = new Set(['list', 'digests', 'apply'] satisfies (keyof Listed)[]);
const CALLS = Object.keys(sinkSchema.shape).filter((name) => name !== 'batch' && !LISTED.has(name));

/**
 * @returns a copy, because a module may change its own later
 * @throws Error that lists everything that is wrong with what `createSink` returned
 */
function batchOf(made: unknown): Sink['batch'] {
  const isPlain = made === null || typeof made !== 'object' || Object.getPrototypeOf(made) === Object.prototype;
  // An object of a class may have members of its own.
  const { error, data } = (isPlain ? sinkSchema : sinkSchema.loose()).safeParse(made);
  if (error === undefined) return data.batch;
  const problems = error.issues.map(({ path, message }) => [path.join('.'), message].filter(Boolean).join(': '));
  throw new Error(`createSink returned an invalid sink: ${problems.join('; ')}`);
}

/**
 * Makes a sink whose failures stay its own. An error that escapes from its driver fails the running call and every later
 * one, and closes it; `close` is called once.
 * @throws what `create` throws; Error if what it returns is not a sink; SinkError if it does not answer in time, also when
 * it closes
 */
export async function createIsolatedSink(create: () => unknown, hide: Hide): Promise<Sink> {
  let closing: Promise<void> | undefined;
  let sink: Sink | undefined;

  function close(): Promise<void> {
    closing ??= withTimeout(CLOSE_TIMEOUT_MS, () => spared(() => sink?.close())).catch((error: unknown) => {
      // Some callers have nothing else that masks it.
      throw masked(error, hide);
    });
    return closing;
  }

  const { confined, spared } = createErrorBoundary(() => void close().catch(() => {}), hide);
  const making = confined(create);
  const made = await withTimeout(CREATE_TIMEOUT_MS, () => making).catch((error: unknown) => {
    // A sink that is made later is not used.
    void making.then((late) => (late as Sink).close()).catch(() => {});
    throw error;
  });
  const batch = batchOf(made);
  sink = made as Sink;
  const members = made as unknown as Record<string, ((...args: unknown[]) => unknown) | undefined>;
  const calls = CALLS.filter((name) => members[name] !== undefined).map((name) => [
    name,
    (...args: unknown[]) => confined(() => members[name]?.apply(made, args)),
  ]);
  return {
    ...(Object.fromEntries(calls) as Sink),
    batch,
    close,
    ...wrapListed(sink, (_signal, work) => confined(work)),
  };
}
