import { Cron } from 'croner';
import type { RunKind } from '../catalog/run.ts';
import type { Plans } from '../catalog/tick.ts';

/*
 * What is due, as pure functions of the schedule, of what was served and of the clock.
 *
 * croner knows the zones. Its rules: a single time of day that does not exist (clocks put forward) fires at the first
 * moment after the gap, one that comes twice fires the first time only, and an expression with an open hour (`*`) fires
 * in both. cron-parser was tried, too: it fails for a time in Lord Howe's gap of half an hour.
 */

export interface Schedule {
  /** Cron expressions of five or six fields, or `off`. */
  readonly fullCron: string;
  readonly deltaCron: string;
  /** IANA name, such as `Europe/Berlin`. */
  readonly timezone: string;
}

/** A scheduled moment that no run has served. */
export interface Due {
  readonly kind: RunKind;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** How far back the newest moment is looked for, one after another: most expressions fire within the first. */
const SPANS_MS = [300_000, 3_600_000, 86_400_000, 8 * 86_400_000, 32 * 86_400_000, 367 * 86_400_000];

const NUMBERS = /^\d+(,\d+)*$/;

/** croner moves a time out of a gap only where it is a single one: `0 2,14 * * *` is read as two expressions. */
function singleTimes(expression: string): string[] {
  const fields = expression.trim().split(/\s+/);
  const [minute = '', hour = ''] = fields.slice(-5);
  if (fields.length < 5 || !NUMBERS.test(minute) || !NUMBERS.test(hour)) return [expression];
  const seconds = fields.slice(0, -5);
  const rest = fields.slice(-3);
  return hour.split(',').flatMap((h) => minute.split(',').map((m) => [...seconds, m, h, ...rest].join(' ')));
}

/** @returns the first moment after `afterMs`, or null where there is none */
type Next = (afterMs: number) => number | null;

/** To read an expression takes as long as to find its next moment; a process has two of them. */
const read = new Map<string, readonly Cron[]>();

function nextOf(cron: string, timezone: string): Next {
  // A day of the month and a day of the week must both match, as in node-cron.
  const options = { timezone, paused: true, domAndDow: true, mode: '5-or-6-parts' } as const;
  const key = `${cron} ${timezone}`;
  const patterns = read.get(key) ?? singleTimes(cron).map((one) => new Cron(one, options));
  read.set(key, patterns);
  return (afterMs) => {
    const moments = patterns.flatMap((pattern) => pattern.nextRun(new Date(afterMs))?.getTime() ?? []);
    return moments.length === 0 ? null : Math.min(...moments);
  };
}

/**
 * @param cron an expression of five or six fields
 * @param afterMs milliseconds since 1970
 * @returns the first moment of the schedule after `afterMs`, milliseconds since 1970; null where there is none, as for `off`
 * @throws Error where `cron` is not an expression
 */
export function nextDue(cron: string, timezone: string, afterMs: number): number | null {
  return cron === 'off' ? null : nextOf(cron, timezone)(afterMs);
}

/** When both schedules come next after `afterMs`. */
export function plansOf({ fullCron, deltaCron, timezone }: Schedule, afterMs: number): Plans {
  return {
    nextFull: nextDue(fullCron, timezone, afterMs),
    nextDelta: nextDue(deltaCron, timezone, afterMs),
  };
}

/**
 * @param afterMs milliseconds since 1970, exclusive; null for a year before `nowMs`
 * @returns the newest moment of the schedule up to `nowMs`, inclusive; null where there is none after `afterMs`
 */
export function newestDue(cron: string, timezone: string, afterMs: number | null, nowMs: number): number | null {
  if (cron === 'off') return null;
  const next = nextOf(cron, timezone);
  for (const span of SPANS_MS) {
    const start = Math.max(afterMs ?? Number.NEGATIVE_INFINITY, nowMs - span);
    let newest: number | null = null;
    for (let at = next(start); at !== null && at <= nowMs; at = next(at)) newest = at;
    if (newest !== null || start === afterMs) return newest;
  }
  return null;
}

/** A machine whose clock is ahead by less than this serves no moment that another one could miss. */
const TOLERANCE_MS = 60_000;

/** @returns whether the noted moment lies in the future: a clock was ahead then, or was put back since */
export function isAhead(servedMs: number | null, nowMs: number): servedMs is number {
  return servedMs !== null && servedMs > nowMs + TOLERANCE_MS;
}

/**
 * What is due now. However many moments were missed, each kind is due once, by its newest moment: a full run makes up for
 * all before it, and so does a delta.
 * @param served the newest moment of each kind that was served, null where none was. Nothing is due before one in the
 *   future: see `isAhead`
 * @returns full before delta: a full run covers a delta
 */
export function dueRuns(
  schedule: Schedule,
  served: Readonly<Record<RunKind, number | null>>,
  nowMs: number,
): readonly Due[] {
  const crons: readonly [RunKind, string][] = [
    ['full', schedule.fullCron],
    ['delta', schedule.deltaCron],
  ];
  return crons.flatMap(([kind, cron]) => {
    const at = newestDue(cron, schedule.timezone, served[kind], nowMs);
    return at === null ? [] : [{ kind, at }];
  });
}
