import type { Clock } from '../clock.ts';
import type { Pace } from './pace.ts';

/**
 * The rate of a source without a configured limit, learned from its refusals (status 429) as TCP learns: every minute of
 * use adds a little, and every refusal takes much. Requests a minute.
 */
export interface LearnedRate {
  readonly perMinute: number;
  /** The rate at which the source last refused a request. */
  readonly refusedAt: number;
}

/** Factor by which a refusal lowers the rate. */
const DECREASE = 0.7;
/** What a minute of use adds, as a part of the rate that was refused: six minutes after a refusal, it is reached again. */
const INCREASE = 0.05;
const LEAST_PER_MINUTE = 1;

/** The rate after a refusal. @param perMinute the rate at which requests were made */
export function afterRefusal(perMinute: number): LearnedRate {
  const refusedAt = Math.max(LEAST_PER_MINUTE, perMinute);
  return { refusedAt, perMinute: Math.max(LEAST_PER_MINUTE, DECREASE * refusedAt) };
}

/** The rate after further requests at this rate. */
export function afterRequests({ perMinute, refusedAt }: LearnedRate, requests: number): LearnedRate {
  return { refusedAt, perMinute: perMinute + (INCREASE * refusedAt * requests) / perMinute };
}

const [SECOND_MS, MINUTE_MS] = [1_000, 60_000];
/** Refusals within this time after another one may be of requests that were in flight. */
const IN_FLIGHT_MS = 5_000;

/** A limit that is learned where none is configured. */
export interface LearnedLimit {
  /** Null until the source has refused a request. */
  pace(): Pace | null;
  /** Notes requests that were made, refused ones included. */
  used(requests: number): void;
  /** Notes that the source refused a request. @param perMinute the rate of requests before, a minute */
  refused(perMinute: number): void;
}

/** Counts requests, to know the rate of a process that keeps none. */
function createRequestCount() {
  /** Requests by second since 1970; of the last minute. */
  const seconds = new Map<number, number>();
  const secondOf = (ms: number): number => Math.floor(ms / SECOND_MS);

  return {
    add(nowMs: number, requests: number): void {
      const now = secondOf(nowMs);
      for (const second of seconds.keys()) if (Math.abs(now - second) * SECOND_MS >= MINUTE_MS) seconds.delete(second);
      seconds.set(now, (seconds.get(now) ?? 0) + requests);
    },
    /**
     * The requests a minute before a refusal. A source that asks for a pause of a second or less counts by the second,
     * any other one by the minute.
     */
    perMinute(nowMs: number, pauseMs: number | undefined): number {
      const countsSeconds = pauseMs !== undefined && pauseMs <= SECOND_MS;
      const windowMs = countsSeconds ? SECOND_MS : MINUTE_MS;
      let requests = 0;
      for (const [second, count] of seconds) if (second > secondOf(nowMs - windowMs)) requests += count;
      return (requests * MINUTE_MS) / windowMs;
    },
  };
}

/** Tells `learned` what this process asks its source, and what the source refuses. */
export function createLearner(clock: Pick<Clock, 'now'>, learned: LearnedLimit | undefined) {
  const count = createRequestCount();
  let knownUntil = 0;
  return {
    asked(requests: number): void {
      if (learned === undefined) return;
      count.add(clock.now(), requests);
      learned.used(requests);
    },
    /**
     * Notes a refusal. Those that follow while the source still refuses everything say nothing new: during the pause that
     * it asks for, or the minute by which one is assumed to count that asks for none.
     */
    refused(pauseMs: number | undefined): void {
      const now = clock.now();
      if (now < knownUntil) return;
      knownUntil = now + Math.max(IN_FLIGHT_MS, pauseMs ?? MINUTE_MS);
      learned?.refused(count.perMinute(now, pauseMs));
    },
  };
}
