import { unlessAborted } from '@catchword/base/abort';
import type { CatchwordError } from '@catchword/base/errors';
import type { Tell } from '@catchword/base/log';

/*
 * How many requests a process has in flight. A refusal (429) that names no time may mean the number at once, or the rate.
 * The number is lowered first: otherwise, a service that refuses the third request at once would be taken for one that
 * allows a few a minute. A 503, also with a time, and a connection that breaks off may mean the same, if the service has
 * answered others since it was last lowered: one that is down answers nothing.
 *
 *     refused, with others in flight ──► half as many; the rate stays
 *     a 429, alone                   ──► the number was not why: as many as configured; the rate is learned
 *     100 answers                    ──► one more
 */

/** At this step, a service that always refuses the third request refuses one in 100. */
const ANSWERS_FOR_ONE_MORE = 100;

export type InFlight = ReturnType<typeof createInFlight>;
/** One request, from its place to its answer. */
export type InFlightRequest = Awaited<ReturnType<InFlight['begin']>>;

/** @param most requests in flight, as configured, from 1 @param tell gets a notice when fewer are allowed */
export function createInFlight(most: number, tell: Tell) {
  let [allowed, places, answers, halvings] = [most, 0, 0, 0];
  /** Whether the source has answered a request since fewer were allowed. */
  let hasAnswered = false;
  /** The lowest number that `tell` knows. */
  let told = most;
  const requests = new Set<{ atOnce: number }>();
  let line: (() => void)[] = [];

  function wake(): void {
    const woken = line;
    line = [];
    for (const go of woken) go();
  }

  function halve(atOnce: number): void {
    allowed = Math.min(allowed, Math.ceil(atOnce / 2));
    halvings++;
    answers = 0;
    hasAnswered = false;
    if (allowed >= told) return;
    told = allowed;
    const reason = `it did not answer one of ${atOnce} at once; now at most ${allowed}, or as many as CATCHWORD_CONCURRENCY says`;
    tell({ message: 'fewer requests at once, because of the source', fields: { reason } });
  }

  return {
    /** Waits until a request may be made. @throws the reason of `signal` */
    begin: async (signal: AbortSignal) => {
      while (places >= allowed) await unlessAborted(new Promise<void>((go) => line.push(go)), signal);
      places++;
      const known = halvings;
      let hasPlace = true;
      /** The most requests that were in flight at one time with this one. */
      const request = { atOnce: 0 };
      return {
        sent: (): void => {
          requests.add(request);
          for (const one of requests) one.atOnce = Math.max(one.atOnce, requests.size);
        },
        /** Gives the place to another request. Only the first call counts. @param isAnswered whether a whole answer arrived */
        end: (isAnswered: boolean): void => {
          if (!hasPlace) return;
          hasPlace = false;
          requests.delete(request);
          places--;
          hasAnswered ||= isAnswered;
          if (isAnswered && allowed < most && ++answers % ANSWERS_FOR_ONE_MORE === 0) allowed++;
          wake();
        },
        /** Learns from the error of the request. @returns whether the number of requests in flight may be why */
        failed: ({ code, retryAfterMs, status }: Pick<CatchwordError, 'code' | 'retryAfterMs' | 'status'>): boolean => {
          // "Retry-After: 0" names no time either.
          const isRate = code === 'SOURCE_RATE_LIMITED' && !retryAfterMs;
          const isBroken = status === 503 || (code === 'SOURCE_UNAVAILABLE' && status === undefined);
          const isBusy = isBroken && request.atOnce > 1 && hasAnswered;
          if (!isRate && !isBusy) return false;
          // It was sent with others that were refused, and says nothing new.
          if (known < halvings) return isRate;
          if (request.atOnce > 1) halve(request.atOnce);
          else [allowed, told] = [most, most];
          wake();
          return isRate && request.atOnce > 1;
        },
      };
    },
  };
}
