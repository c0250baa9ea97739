import cron from 'node-cron';
import type { RunKind } from '../catalog/run.ts';
import { tickName, tickTime } from '../catalog/tick.ts';
import type { Clock } from '../clock.ts';
import { CatchwordError, messageOf } from '../errors.ts';
import { iso } from '../iso-time.ts';
import type { Service } from '../lifecycle.ts';
import { errorFields, type Logger } from '../log.ts';
import { dueRuns, isAhead, nextDue, type Schedule } from './due.ts';

/** Which moments were served. The mirror keeps them (store/schedule.ts); a scheduler without a mirror keeps its own. */
export interface ServedTicks {
  /** The newest moment that was served, milliseconds since 1970; null where none was. */
  served(kind: RunKind): number | null;
  /** Moments after `nowMs` count as not served. */
  forgetAfter(kind: RunKind, nowMs: number): void;
}

export interface ScheduleOptions extends Schedule {
  readonly ticks: ServedTicks;
  readonly clock: Clock;
  readonly log: Logger;
  /**
   * Called for what is due, again and again until it is served. `tick` names the moment; it is the same on every machine,
   * so that two schedulers start one run.
   */
  readonly onDue: (kind: RunKind, tick: string) => Promise<void>;
}

const KINDS = ['full', 'delta'] as const;
/**
 * The longest time between two looks. node-cron alone does not do: where the clock is put back, it waits until the clock
 * shows the moment that it had planned.
 */
const LOOK_MS = 30_000;
/** A moment that is served later than this was missed. */
const LATE_MS = 120_000;

/** @throws CatchwordError CONFIG_INVALID naming the variable */
export function checkCron(variable: string, expression: string): void {
  if (expression === 'off') return;
  const { valid, errors } = cron.validateDetailed(expression);
  let reason = valid ? undefined : (errors[0]?.message ?? 'Five fields are needed');
  try {
    // Of two libraries, each may know a form that the other does not.
    if (valid && nextDue(expression, 'UTC', 0) === null) reason = 'It never comes';
  } catch (error) {
    reason = messageOf(error);
  }
  if (reason === undefined) return;
  throw new CatchwordError(
    'CONFIG_INVALID',
    `${variable}: ${JSON.stringify(expression)} is not a cron expression that can be used`,
    { hint: `${reason}. An example: 0 2 * * * (every day at two); or off.` },
  );
}

/** Notes, and says, that a moment in the future was not served after all: the clock was put back. */
export function judgeTicks(ticks: ServedTicks, kind: RunKind, nowMs: number, log: Logger): void {
  const at = ticks.served(kind);
  if (!isAhead(at, nowMs)) return;
  log.warn({ kind, servedAt: iso(at) }, 'the clock was put back: moments of the schedule that lie ahead come again');
  ticks.forgetAfter(kind, nowMs);
}

/** Calls `onDue` for what is due now. */
export async function lookWhatIsDue({ ticks, clock, log, onDue, ...schedule }: ScheduleOptions): Promise<void> {
  const now = clock.now();
  for (const kind of KINDS) judgeTicks(ticks, kind, now, log);
  const served = { full: ticks.served('full'), delta: ticks.served('delta') };
  for (const { kind, at } of dueRuns(schedule, served, now)) {
    if (now - at > LATE_MS) log.debug({ kind, dueAt: iso(at) }, 'a scheduled moment was missed and is made up for');
    try {
      await onDue(kind, tickName(kind, at));
    } catch (error) {
      log.error({ kind, ...errorFields(error) }, 'a scheduled run could not be asked for');
    }
  }
}

/** Looks at once, and whenever a moment of the schedule may have come. */
export function startScheduler(options: ScheduleOptions): Service {
  const { clock, log, timezone } = options;
  const expressions = { full: options.fullCron, delta: options.deltaCron };
  checkCron('CATCHWORD_FULL_CRON', expressions.full);
  checkCron('CATCHWORD_DELTA_CRON', expressions.delta);
  const stopping = new AbortController();
  let looking: Promise<void> | undefined;

  function look(): Promise<void> {
    looking ??= lookWhatIsDue(options)
      .catch((error: unknown) => log.error(errorFields(error), 'the schedule could not be looked at'))
      .finally(() => {
        looking = undefined;
      });
    return looking;
  }

  async function lookRegularly(): Promise<void> {
    while (!stopping.signal.aborted) {
      await look();
      await clock.sleep(LOOK_MS, stopping.signal).catch(() => {});
    }
  }

  const bySecond = Object.values(expressions).some((expression) => expression.trim().split(/\s+/).length === 6);
  const task = cron.schedule(bySecond ? '* * * * * *' : '* * * * *', look, {
    timezone: 'UTC',
    noOverlap: true,
    name: 'schedule',
    suppressMissedWarning: true,
  });
  for (const kind of KINDS) {
    if (expressions[kind] === 'off') continue;
    const nextAt = iso(nextDue(expressions[kind], timezone, clock.now()));
    log.info({ kind, cron: expressions[kind], timezone, nextAt }, 'scheduled');
  }
  const running = lookRegularly();
  return {
    name: 'scheduler',
    stop: async () => {
      stopping.abort();
      await task.destroy();
      await running;
      await looking;
    },
  };
}

/** For a scheduler without a mirror: what it has asked for. It asks for the newest moment at its start, and the keeper decides. */
export function createAskedTicks(): ServedTicks & { asked(kind: RunKind, tick: string): void } {
  const newest = new Map<RunKind, number>();
  return {
    served: (kind) => newest.get(kind) ?? null,
    forgetAfter: (kind, nowMs) => {
      newest.set(kind, Math.min(newest.get(kind) ?? nowMs, nowMs));
    },
    asked: (kind, tick) => {
      const at = tickTime(tick);
      if (at !== null) newest.set(kind, at);
    },
  };
}
