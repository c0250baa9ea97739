import { type Clock, createPauses, type Pauses } from '@catchword/base/clock';
import type { CatchwordError } from '@catchword/base/errors';
import { createLearnedRate, type LearnedLimit } from './learned-rate.ts';
import type { Pace } from './pace.ts';
import { createWaitingLine, type Wait } from './waiting-line.ts';

export interface PacerOptions {
  /** Null if none is configured. */
  readonly pace: Pace | null;
  /** Learns a limit where none is configured; default: requests are not limited. */
  readonly learned?: LearnedLimit | undefined;
  readonly clock: Clock;
  /** Stores the pauses that the source asks for; default: in memory. */
  readonly pauses?: Pauses;
  /** Shares the pace with other processes; default: the pace is for this process only. */
  readonly reserve?: Reserve | undefined;
  /** Takes a turn with processes that `reserve` does not know. After it returned null, `reserve` is used. */
  readonly shared?: (() => Promise<Omit<Wait, 'until'> | null>) | undefined;
  /** Called before a wait of more than a few seconds; for waits caused by the pace, only before the first. */
  readonly onWait?: (wait: Wait) => void;
}

/**
 * Reserves `slots` requests, one interval apart, for this process among all that share the limit.
 * @returns the time of the first one if that is `nowMs` or earlier; a later time means that nothing was reserved and
 *   when to ask again. Null if the limit cannot be shared: from then on this process keeps the pace on its own.
 */
export type Reserve = (nowMs: number, request: Pace & { readonly slots: number }) => number | null;

/** How far ahead requests are reserved: at high rates, several at a time, to spare the mirror that stores them. */
const RESERVED_MS = 200;

/** The slot time that a request at `now` counts for. */
function counted(slot: number, now: number, { slackMs }: Pace): number {
  return now - slot <= slackMs ? slot : now;
}

/** Manages the request slots of one process; with `reserve`, it uses reserved slots only. */
function createSlots(reserve: Reserve | undefined) {
  let shared = reserve;
  let [next, reservedTo] = [0, 0];

  function isReserved(now: number, pace: Pace, slots: number): boolean {
    // A later time than any reservation means that the clock was put back: the reservations are void.
    const isKnown = reservedTo <= now + slots * pace.intervalMs;
    // Without the slack, which is longer than the interval at high rates. The half is for rounding.
    return isKnown && counted(next, now, pace) + pace.intervalMs / 2 <= reservedTo;
  }

  return {
    /** The time of the next slot; the request may be sent if that is `now` or earlier. */
    at(now: number, pace: Pace): number {
      const slots = Math.max(1, Math.floor(RESERVED_MS / pace.intervalMs));
      // It is further ahead only if the clock was put back.
      next = Math.min(next, now + pace.intervalMs);
      if (next > now || shared === undefined || isReserved(now, pace, slots)) return next;
      const found = shared(now, { ...pace, slots });
      if (found === null) shared = undefined;
      if (found === null || found > now) return found ?? next;
      next = found;
      reservedTo = found + slots * pace.intervalMs;
      return found;
    },
    take(now: number, pace: Pace): void {
      next = counted(next, now, pace) + pace.intervalMs;
    },
  };
}

export type Pacer = ReturnType<typeof createPacer>;

/**
 * Decides when the next request may be sent: on an even grid, never in a burst, so that the rate is kept in whatever window
 * a source counts. A request that is late by no more than the slack does not move the grid: late timers would add up.
 */
export function createPacer({ pace, learned, clock, pauses = createPauses(), onWait, ...options }: PacerOptions) {
  const slots = createSlots(options.reserve);
  let { shared } = options;
  const learner = createLearnedRate(clock, learned);

  async function take(now: number): Promise<Omit<Wait, 'until'>> {
    const pause = pauses.current(now);
    if (pause !== null) return { ms: pause.until - now, reason: 'asked' };
    if (shared !== undefined) {
      const turn = await shared();
      if (turn?.ms === 0) learner.asked(1);
      if (turn !== null) return turn;
      shared = undefined;
    }
    const current = pace ?? learned?.pace() ?? null;
    const ms = current === null ? 0 : Math.max(0, slots.at(now, current) - now);
    if (ms > 0) return { ms, reason: 'pace' };
    if (current !== null) slots.take(now, current);
    learner.asked(1);
    return { ms: 0, reason: 'pace' };
  }

  return {
    acquire: createWaitingLine({ clock, take, onWait }),
    succeeded: (): void => learner.succeeded(),
    /** Blocks every request, also waiting ones, for as long as the source asks with an error, and learns from a refusal. */
    async heed({ code, retryAfterMs }: Pick<CatchwordError, 'code' | 'retryAfterMs'>): Promise<void> {
      const since = clock.now();
      // Another process may have noted the refusal.
      const isKnown = pauses.current(since) !== null;
      if (retryAfterMs !== undefined && retryAfterMs > 0) pauses.note({ since, until: since + retryAfterMs });
      if (code === 'SOURCE_RATE_LIMITED' && !isKnown) learner.refused(retryAfterMs);
    },
  };
}
