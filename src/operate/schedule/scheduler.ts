import type { Clock } from '@catchword/base/clock';
import { iso } from '@catchword/base/iso-time';
import { repeat, type Service } from '@catchword/base/lifecycle';
import { errorFields, type Logger } from '@catchword/base/log';
import { createTrouble } from '@catchword/base/trouble';
import type { RunKind } from '@catchword/catalog/run-types';
import { type MissedTicks, tickName, tickTime } from '@catchword/catalog/tick';
import cron from 'node-cron';
import { checkCron, dueRuns, isAhead, KINDS, LATE_MS, nextDue, type Schedule, ticksBetween } from './due.ts';

/** The served ticks. Kept in the mirror (store/rows/served-ticks.ts), or in memory by a scheduler without a mirror. */
interface ServedTicks {
  /** The newest served tick, milliseconds since 1970; null if there is none. */
  served(kind: RunKind): number | null;
  /** Marks ticks after `nowMs` as not served. */
  forgetAfter(kind: RunKind, nowMs: number): void;
}

export interface ScheduleOptions extends Schedule {
  readonly ticks: ServedTicks;
  readonly clock: Clock;
  readonly log: Logger;
  /**
   * Called for each run that is due, until its tick is served. Two schedulers name the same `tick`.
   * @param since when the first tick that the run makes up for was due, milliseconds since 1970
   */
  readonly onDue: (kind: RunKind, tick: string, since: number) => Promise<void>;
}

/** A keeper waits for the request of its scheduler for so long. */
const LATE_REQUEST_MS = 60_000;
/** Longest time between two checks. If the clock is put back, node-cron waits for the planned time. */
const CHECK_MS = 30_000;

/** Marks served ticks in the future as not served, because the clock was put back. */
export function forgetFutureTicks(ticks: ServedTicks, kind: RunKind, nowMs: number, log: Logger): void {
  const at = ticks.served(kind);
  if (!isAhead(at, nowMs)) return;
  log.warn({ kind, servedAt: iso(at) }, 'the clock was put back: scheduled runs after the current time are made again');
  ticks.forgetAfter(kind, nowMs);
}

/** Makes a check for due runs. A failure is only logged; the next check may come after a second. */
function createCheck({ ticks, clock, log, onDue, ...schedule }: ScheduleOptions): () => Promise<void> {
  const since = clock.now();
  /** The newest check. */
  let last = since;
  /** The newest tick of each kind for which missed ones were logged. */
  const logged = new Map<RunKind, number>();
  const place = { clock, log, level: 'error' } as const;
  const unrequested = createTrouble({ ...place, wrong: 'a scheduled run could not be requested' });
  const unchecked = createTrouble({ ...place, wrong: 'the schedule could not be checked' });

  /** Why ticks were not served, as far as this process knows. */
  function whyMissed({ from, upTo }: MissedTicks): string {
    if (upTo < since) return 'no daemon was running';
    if (from > last)
      return 'this process did not run: the machine was suspended, its clock put forward, or the mirror locked';
    const isBusy = 'another run or process kept the mirror busy';
    return from >= since ? isBusy : `no daemon was running, or ${isBusy}`;
  }

  /** Calls `onDue` for each run that is due now. Logs once which ticks one run makes up for, and why it has to. */
  async function requestDueRuns(): Promise<void> {
    const now = clock.now();
    for (const kind of KINDS) forgetFutureTicks(ticks, kind, now, log);
    const served = { full: ticks.served('full'), delta: ticks.served('delta') };
    for (const { kind, at } of dueRuns(schedule, served, now)) {
      const after = served[kind];
      const missed = after === null ? null : ticksBetween(schedule[`${kind}Cron`], schedule.timezone, after, at - 1);
      if (missed !== null && logged.get(kind) !== at) {
        logged.set(kind, at);
        const times = { dueAt: iso(missed.from), missedUpTo: iso(missed.upTo) };
        const fields = { kind, missed: missed.ticks, ...times, reason: whyMissed(missed) };
        log.warn(fields, 'scheduled runs were missed: one run makes up for all of them');
      }
      if (now - at > LATE_MS) log.debug({ kind, dueAt: iso(at) }, 'a scheduled run was missed and starts now');
      try {
        await onDue(kind, tickName(kind, at), missed?.from ?? at);
      } catch (error) {
        unrequested.failed(kind, { kind, ...errorFields(error) });
      }
    }
    last = now;
  }

  return () => requestDueRuns().catch((error: unknown) => unchecked.failed('', errorFields(error)));
}

/** Checks for due runs now, and whenever a tick may have come. */
export function startScheduler(options: ScheduleOptions): Service {
  const { clock, log, fullCron, deltaCron, timezone } = options;
  checkCron('CATCHWORD_FULL_CRON', fullCron);
  checkCron('CATCHWORD_DELTA_CRON', deltaCron);
  const checkNow = createCheck(options);
  let checking: Promise<void> | undefined;

  function check(): Promise<void> {
    checking ??= checkNow().finally(() => {
      checking = undefined;
    });
    return checking;
  }

  const bySecond = [fullCron, deltaCron].some((expression) => expression.trim().split(/\s+/).length === 6);
  const task = cron.schedule(bySecond ? '* * * * * *' : '* * * * *', check, {
    timezone: 'UTC',
    noOverlap: true,
    name: 'schedule',
    suppressMissedWarning: true,
  });
  for (const kind of KINDS) {
    const expression = options[`${kind}Cron`];
    const nextAt = nextDue(expression, timezone, clock.now());
    if (expression !== 'off') log.info({ kind, cron: expression, timezone, nextAt: iso(nextAt) }, 'scheduled');
  }
  const checksRegularly = repeat({ name: 'schedule', clock, everyMs: CHECK_MS, turn: check });
  return {
    name: 'scheduler',
    stop: async () => {
      await task.destroy();
      await checksRegularly.stop();
      await checking;
    },
  };
}

/**
 * Requests runs that were due before the start, and later every late run: the request of a scheduler reaches one
 * keeper, and there may be several mirrors; or that keeper, or the scheduler, has died.
 */
export function requestLateRuns(options: ScheduleOptions): Service {
  const { clock } = options;
  const startedAt = clock.now();
  async function onDue(kind: RunKind, tick: string, since: number): Promise<void> {
    if (since < startedAt || clock.now() - since >= LATE_REQUEST_MS) await options.onDue(kind, tick, since);
  }

  return repeat({ name: 'late runs', clock, everyMs: CHECK_MS, turn: createCheck({ ...options, onDue }) });
}

/**
 * Passes on requested runs when they are due by this process's clock: the scheduler's clock may be ahead.
 * A request that is far too early is ignored: `requestLateRuns` makes up for it.
 */
export function startRequestedRuns({ clock, log, onDue }: Pick<ScheduleOptions, 'clock' | 'log' | 'onDue'>) {
  const stopping = new AbortController();
  return {
    name: 'requested runs',
    request: async ({ kind, tick }: { readonly kind: RunKind; readonly tick: string }): Promise<void> => {
      const earlyMs = (tickTime(tick) ?? 0) - clock.now();
      if (earlyMs >= LATE_REQUEST_MS) {
        const dueAt = iso(tickTime(tick));
        log.warn({ kind, dueAt }, 'a run was requested too early: the clock of the scheduler is ahead');
        return;
      }
      if (earlyMs > 0) await clock.sleep(earlyMs, stopping.signal).catch(() => {});
      if (stopping.signal.aborted) return;
      // The mirror may be locked for long. `requestLateRuns` makes up for it.
      await onDue(kind, tick, tickTime(tick) ?? 0).catch((error: unknown) =>
        log.error({ kind, ...errorFields(error) }, 'a scheduled run could not be requested'),
      );
    },
    stop: async (): Promise<void> => stopping.abort(),
  };
}

/** Keeps the ticks that a scheduler without a mirror has requested. At its start it requests the newest again. */
export function createRequestedTicks(): ServedTicks & { requested(kind: RunKind, tick: string): void } {
  const newest = new Map<RunKind, number>();
  return {
    served: (kind) => newest.get(kind) ?? null,
    forgetAfter: (kind, nowMs) => {
      newest.set(kind, Math.min(newest.get(kind) ?? nowMs, nowMs));
    },
    requested: (kind, tick) => {
      const at = tickTime(tick);
      if (at !== null) newest.set(kind, at);
    },
  };
}
