import { createRequire } from 'node:module';
import { CatchwordError, messageOf } from '@catchword/base/errors';
import type { RunKind } from '@catchword/catalog/run-types';
import { type MissedTicks, MOST_MISSED, type Plans } from '@catchword/catalog/tick';
import type { Cron } from 'croner';

/*
 * croner handles time zones. If clocks are put forward over a single time of day, it fires right after the skipped
 * hour. If clocks are put back and the time occurs twice, it fires the first time only; an expression with an open hour
 * (`*`) fires both times. cron-parser was tried too: it fails for Lord Howe, which skips half an hour.
 */

export interface Schedule {
  /** Cron expressions of five or six fields, or `off`. */
  readonly fullCron: string;
  readonly deltaCron: string;
  /** IANA name, such as `Europe/Berlin`. */
  readonly timezone: string;
}

export const KINDS = ['full', 'delta'] as const;

/** How far back to look for the newest tick. */
const YEAR_MS = 367 * 86_400_000;

const NUMBERS = /^\d+(,\d+)*$/;

/** Splits `0 2,14 * * *` into two expressions, because croner moves only single times out of a skipped hour. */
function singleTimes(expression: string): string[] {
  const fields = expression.trim().split(/\s+/);
  const [minute = '', hour = ''] = fields.slice(-5);
  if (fields.length < 5 || !NUMBERS.test(minute) || !NUMBERS.test(hour)) return [expression];
  const seconds = fields.slice(0, -5);
  const rest = fields.slice(-3);
  return hour.split(',').flatMap((h) => minute.split(',').map((m) => [...seconds, m, h, ...rest].join(' ')));
}

/** Loads croner and node-cron when they are needed: few commands start a schedule, and few users set one. */
const load = createRequire(import.meta.url);

/** Caches parsed expressions: parsing one takes as long as finding its next tick, and a process has two. */
const parsed = new Map<string, readonly Cron[]>();

function patternsOf(cron: string, timezone: string): readonly Cron[] {
  // A day of the month and a day of the week must both match, as in node-cron.
  const options = { paused: true, domAndDow: true, mode: '5-or-6-parts' } as const;
  // Loading the zones takes up to 40 ms.
  const zone = timezone === 'UTC' ? { utcOffset: 0 } : { timezone };
  const key = `${cron} ${timezone}`;
  const make = (one: string): Cron => {
    const croner = load('croner') as typeof import('croner');
    return new croner.Cron(one, { ...options, ...zone });
  };
  const patterns = parsed.get(key) ?? singleTimes(cron).map(make);
  parsed.set(key, patterns);
  return patterns;
}

/**
 * @returns the first tick after `afterMs`, milliseconds since 1970; null if there is none, as for `off`
 * @throws Error if `cron` is not a valid expression
 */
export function nextDue(cron: string, timezone: string, afterMs: number): number | null {
  if (cron === 'off') return null;
  const moments = patternsOf(cron, timezone).flatMap((one) => one.nextRun(new Date(afterMs))?.getTime() ?? []);
  return moments.length === 0 ? null : Math.min(...moments);
}

/** @throws CatchwordError CONFIG_INVALID naming the variable */
export function checkCron(variable: string, expression: string): void {
  if (expression === 'off') return;
  const { validateDetailed } = load('node-cron') as typeof import('node-cron');
  const { valid, errors } = validateDetailed(expression);
  let reason = valid ? undefined : (errors[0]?.message ?? 'Use five fields');
  try {
    // Checked with both libraries, because each accepts forms that the other does not.
    if (valid && nextDue(expression, 'UTC', 0) === null) reason = 'It never fires';
  } catch (error) {
    reason = messageOf(error);
  }
  if (reason === undefined) return;
  const hint = `${reason}. Example: 0 2 * * * (every day at 02:00); or off.`;
  const what = `${variable}: ${JSON.stringify(expression)} is not a valid cron expression`;
  throw new CatchwordError('CONFIG_INVALID', what, { hint });
}

/** @returns the newest tick after `afterMs` (null: a year ago) up to and including `nowMs`; null if there is none */
export function newestDue(cron: string, timezone: string, afterMs: number | null, nowMs: number): number | null {
  if (cron === 'off') return null;
  // croner counts in whole seconds, and without the given one.
  const before = new Date((Math.floor(nowMs / 1_000) + 1) * 1_000);
  const moments = patternsOf(cron, timezone).flatMap((one) => one.previousRuns(1, before)[0]?.getTime() ?? []);
  const newest = Math.max(...moments);
  return newest > Math.max(afterMs ?? 0, nowMs - YEAR_MS) ? newest : null;
}

/** Clocks of two machines may differ by this much. */
const TOLERANCE_MS = 60_000;

/** @returns whether the served tick is in the future: a clock was ahead then, or was put back since */
export function isAhead(servedMs: number | null, nowMs: number): servedMs is number {
  return servedMs !== null && servedMs > nowMs + TOLERANCE_MS;
}

/** A scheduled time is missed if it is not served so long afterwards: it may wait for the next check. */
export const LATE_MS = 120_000;

/** @returns the ticks after `afterMs` up to and including `upToMs`; null if there are none */
export function ticksBetween(cron: string, timezone: string, afterMs: number, upToMs: number): MissedTicks | null {
  const upTo = newestDue(cron, timezone, afterMs, upToMs);
  if (upTo === null) return null;
  const next = (at: number): number | null => nextDue(cron, timezone, at);
  const from = next(afterMs) ?? upTo;
  let ticks = 1;
  for (let at = next(from); at !== null && at <= upTo && ticks <= MOST_MISSED; at = next(at)) ticks++;
  return { ticks, from, upTo };
}

/** Plans of both schedules at a moment. @param served the newest served tick of each kind, null if none was */
export function plansOf(
  { fullCron, deltaCron, timezone }: Schedule,
  served: Readonly<Record<RunKind, number | null>>,
  nowMs: number,
): Plans {
  const missed = (cron: string, servedMs: number | null): MissedTicks | null =>
    servedMs === null ? null : ticksBetween(cron, timezone, servedMs, nowMs - LATE_MS);
  return {
    nextFull: nextDue(fullCron, timezone, nowMs),
    nextDelta: nextDue(deltaCron, timezone, nowMs),
    missedFull: missed(fullCron, served.full),
    missedDelta: missed(deltaCron, served.delta),
    timezone,
  };
}

/** The next runs of both schedules, the earliest first. @param most how many */
export function upcomingRuns(schedule: Schedule, nowMs: number, most: number) {
  const runs = KINDS.flatMap((kind) => {
    const next = (at: number) => nextDue(schedule[`${kind}Cron`], schedule.timezone, at);
    const times: number[] = [];
    for (let at = next(nowMs); at !== null && times.length < most; at = next(at)) times.push(at);
    return times.map((at) => ({ kind, at }));
  });
  return runs.sort((a, b) => a.at - b.at).slice(0, most);
}

/**
 * The runs that are due now, and when each was scheduled. Each kind is due once, by its newest tick, because one run
 * makes up for all that were missed; full before delta, because a full run covers a delta.
 * @param served the newest served tick of each kind, null if none was. Nothing is due while it is in the future
 */
export function dueRuns(schedule: Schedule, served: Readonly<Record<RunKind, number | null>>, nowMs: number) {
  return KINDS.flatMap((kind) => {
    const at = newestDue(schedule[`${kind}Cron`], schedule.timezone, served[kind], nowMs);
    return at === null ? [] : [{ kind, at }];
  });
}
