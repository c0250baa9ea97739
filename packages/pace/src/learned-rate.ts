import type { Clock } from '@catchword/base/clock';
import type { Pace } from './pace.ts';

/** Requests a minute, learned from refusals (429) as TCP learns: use adds a little, a refusal after a success takes much. */
export interface LearnedRate {
  readonly perMinute: number;
  /** The rate at which the source last refused a request. */
  readonly refusedAt: number;
}

/** Factor by which a refusal lowers the rate. */
const DECREASE = 0.7;
/** What a minute of use adds, as a part of the rate that was refused: six minutes after a refusal, it is reached again. */
const INCREASE = 0.05;
/**
 * What a minute of use adds above the rate that was refused, as a part of the current rate: the source has not refused
 * since. A limit that was learned too low, while another program used the quota, grows tenfold in 25 minutes of use.
 */
const FAST_INCREASE = 0.1;
const LEAST_PER_MINUTE = 1;

/** The rate after a refusal. @param perMinute the rate at which requests were made */
export function afterRefusal(perMinute: number): LearnedRate {
  const refusedAt = Math.max(LEAST_PER_MINUTE, perMinute);
  return { refusedAt, perMinute: Math.max(LEAST_PER_MINUTE, DECREASE * refusedAt) };
}

/** The rate after further requests at this rate, which the source did not refuse. */
export function afterRequests({ perMinute, refusedAt }: LearnedRate, requests: number): LearnedRate {
  const eachMinute = perMinute < refusedAt ? INCREASE * refusedAt : FAST_INCREASE * perMinute;
  return { refusedAt, perMinute: perMinute + (eachMinute * requests) / perMinute };
}

const [SECOND_MS, MINUTE_MS] = [1_000, 60_000];
/** Requests within so short a time are counted together, which limits memory. */
const TOGETHER_MS = 100;
/** Refusals within this time after another one may be of requests that were in flight. */
const IN_FLIGHT_MS = 5_000;

export interface LearnedLimit {
  /** Null until the source has refused a request. */
  pace(): Pace | null;
  /** Notes requests that succeeded. */
  used(requests: number): void;
  /** Notes that the rate is too high for the source. @param perMinute the rate of requests before, a minute */
  refused(perMinute: number): void;
}

/** Tells `learned` what this process asks its source, and what the source refuses. */
export function createLearnedRate(clock: Pick<Clock, 'now'>, learned: LearnedLimit | undefined) {
  /** Requests of the last minute. */
  let recent: { readonly at: number; requests: number }[] = [];
  let knownUntil = 0;
  let hasSucceeded = false;

  const since = (now: number, spanMs: number) => recent.filter(({ at }) => Math.abs(now - at) < spanMs);

  return {
    asked(requests: number): void {
      if (learned === undefined) return;
      const now = clock.now();
      const [last] = since(now, TOGETHER_MS);
      if (last === undefined) recent = [...since(now, MINUTE_MS), { at: now, requests }];
      else last.requests += requests;
    },
    succeeded(): void {
      hasSucceeded = true;
      learned?.used(1);
    },
    /**
     * Notes a refusal. Refusals that follow while the source still refuses everything say nothing new: during the pause that
     * it asks for, or the minute by which one is assumed to count that asks for none, and until a request succeeds. A
     * source that refuses every request, such as one whose quota another program has used up, says nothing about this rate.
     */
    refused(pauseMs: number | undefined): void {
      const now = clock.now();
      if (!hasSucceeded || now < knownUntil) return;
      hasSucceeded = false;
      knownUntil = now + Math.max(IN_FLIGHT_MS, pauseMs ?? MINUTE_MS);
      // A source that asks for a pause of a second or less counts by the second, any other one by the minute.
      const spanMs = pauseMs !== undefined && pauseMs <= SECOND_MS ? SECOND_MS : MINUTE_MS;
      const requests = since(now, spanMs).reduce((sum, one) => sum + one.requests, 0);
      learned?.refused((requests * MINUTE_MS) / spanMs);
    },
  };
}
