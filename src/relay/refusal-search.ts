import type { SinkEvent } from '@catchword/sink-kit/sink';

export type RefusalSearch = ReturnType<typeof createRefusalSearch>;

/**
 * Finds the event that a sink refuses, by halving batches. Batches after it are small at first, and twice as large after each
 * that is accepted: a store that refuses one event often refuses others.
 */
export function createRefusalSearch() {
  let limit = Number.POSITIVE_INFINITY;
  /** The search covers the events up to this one. */
  let until = 0;
  let refusedInARow = 0;
  /** Parked events that were refused again since a retry began; none counts once the sink has accepted a batch. */
  let refusedAgain = 0;

  /** Ends the search: the refused event is parked. */
  function found(): void {
    until = 0;
  }

  /** Handles a refused batch. @returns the refused event, or null if the search continues with smaller batches */
  function narrow<Event extends Pick<SinkEvent, 'seq'>>(events: readonly Event[]): Event | null {
    if (events.length <= 1) return events[0] ?? null;
    limit = Math.floor(events.length / 2);
    until = Math.max(until, events.at(-1)?.seq ?? 0);
    return null;
  }

  return {
    /** The most events that the next batch may have. */
    limit: () => limit,
    narrow,
    found,
    /** Notes that the log is delivered up to `seq`. */
    passed: (seq: number) => {
      if (seq >= until) found();
    },
    /** Counts a refused event. @returns how many were refused in a row, without an accepted batch between them */
    countRefusal: () => ++refusedInARow,
    /** Counts a parked event that is refused again. @returns how many were, without an accepted batch since the retry began */
    countRefusedAgain: () => ++refusedAgain,
    retryEnded: (): void => {
      refusedAgain = 0;
    },
    /** Notes that the sink accepted a batch. @param most as many as the sink takes */
    accepted: (most: number) => {
      refusedInARow = 0;
      refusedAgain = Number.NEGATIVE_INFINITY;
      if (until === 0) limit = 2 * limit < most ? 2 * limit : Number.POSITIVE_INFINITY;
    },
    /** Starts over: the sink is stopped. */
    reset: () => {
      refusedInARow = 0;
      until = 0;
      limit = Number.POSITIVE_INFINITY;
    },
  };
}
