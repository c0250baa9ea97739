import { usageError } from '@catchword/base/errors';
import * as z from 'zod';

/** Decisions about a run; the target is its number. */
export const RUN_ACTIONS = ['approve', 'reject', 'check', 'undo', 'cancel'] as const;

/** Decisions about a sink; the target is its name. */
export const SINK_ACTIONS = [
  'pause',
  'resume',
  'retry',
  'replay',
  'skip',
  'skip-all',
  'release',
  'release-newest',
  'verify',
  'verify-deep',
  'repair',
  'repair-deep',
  'repair-all',
] as const;

/** All decisions, on the page or with a command. The target of `start` is the kind of the run. */
export const ACTIONS = [...RUN_ACTIONS, 'start', ...SINK_ACTIONS] as const;

export type RunAction = (typeof RUN_ACTIONS)[number];
export type SinkAction = (typeof SINK_ACTIONS)[number];
export type Action = (typeof ACTIONS)[number];

/** A decision of an operator. */
export interface Decision {
  /** The name that the operator gave, and from where; one line. */
  readonly who: string;
  readonly action: Action;
  /** The number of a run, the name of a sink, or the kind of a run to start. */
  readonly target: string;
  /**
   * Of `replay`: the change to start from, 0 for all current products. Of `skip`: the event. Of `release` and
   * `release-newest`: what held the sink when the person decided, as `holdNumber` says; null: not known. Otherwise null.
   */
  readonly argument: number | null;
}

export function isRunAction(action: string): action is RunAction {
  return RUN_ACTIONS.some((one) => one === action);
}

export function isSinkAction(action: string): action is SinkAction {
  return SINK_ACTIONS.some((one) => one === action);
}

function wholeNumber(least: number) {
  const message = `is not a whole number of ${least} or more`;
  return z
    .string()
    .regex(/^\d{1,15}$/, message)
    .transform(Number)
    .refine((value) => value >= least, message);
}

const NO_ARGUMENT = z
  .literal('', 'is not used by this action: leave it out')
  .default('')
  .transform(() => null);

const sinkName = z.string('names no sink').min(1, 'names no sink').max(200, 'is longer than the name of any sink');
const FORM = z.discriminatedUnion(
  'action',
  [
    z.strictObject({ action: z.enum(RUN_ACTIONS), target: wholeNumber(1).transform(String), argument: NO_ARGUMENT }),
    z.strictObject({
      action: z.literal('start'),
      target: z.enum(['full', 'delta'], 'is not a kind of run: full or delta'),
      argument: NO_ARGUMENT,
    }),
    z.strictObject({
      action: z.literal('replay'),
      target: sinkName,
      argument: z
        .literal('')
        .transform(() => 0)
        .or(wholeNumber(0))
        .default(0),
    }),
    z.strictObject({ action: z.literal('skip'), target: sinkName, argument: wholeNumber(1) }),
    z.strictObject({
      action: z.enum(['release', 'release-newest']),
      target: sinkName,
      argument: NO_ARGUMENT.or(wholeNumber(0)),
    }),
    z.strictObject({
      action: z.enum(SINK_ACTIONS).exclude(['replay', 'skip', 'release', 'release-newest']),
      target: sinkName,
      argument: NO_ARGUMENT,
    }),
  ],
  `choose one of ${ACTIONS.join(', ')}`,
);

/** Several decisions at once: `run:NUMBER`, or `sink:NAME:` and the number of what holds it. */
const TICKED = z
  .string()
  .regex(/^(run:\d+|sink:.+:\d+)$/, 'is neither a run nor a sink')
  .transform((text) => text.split(':'));
const SEVERAL = z.strictObject({
  verdict: z.enum(['approve', 'reject'], 'is neither approve nor reject'),
  of: z.preprocess((given) => [given ?? []].flat(), z.array(TICKED).min(1, 'nothing is ticked')),
});

/**
 * Reads the fields of a form: one decision, or a verdict about several runs and sinks.
 * @throws CatchwordError USAGE naming every field that is wrong
 */
export function readDecisions(fields: unknown, who: string): Decision[] {
  if (typeof fields !== 'object' || fields === null || !('verdict' in fields))
    return [{ ...parsed(FORM, fields), who }];
  const { verdict, of } = parsed(SEVERAL, fields);
  return of.map(([what, target, argument]) => {
    if (what === 'run') return { ...parsed(FORM, { action: verdict, target }), who };
    if (verdict === 'reject') throw usageError(`of: sink ${target} cannot be rejected`, 'Go back, and tick only runs.');
    return { ...parsed(FORM, { action: 'release', target, argument }), who };
  });
}

function parsed<T>(form: z.ZodType<T>, fields: unknown): T {
  const given = fields ?? {};
  const parsed = form.safeParse(given);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(({ path, message, ...issue }) => {
    if (issue.code !== 'unrecognized_keys') return `${path.join('.') || 'fields'}: ${message}`;
    const { action, verdict } = given as Readonly<Record<string, string | undefined>>;
    return `${issue.keys.join(', ')}: not a field of ${verdict ?? action}`;
  });
  throw usageError(problems.join('; '), 'Go back and use a button of the page, or use the catchword command.');
}
