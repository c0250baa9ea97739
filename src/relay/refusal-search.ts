import type { SinkEvent } from './sink.ts';

/** Finds the event that a sink refuses, by delivering ever smaller batches. */
export interface RefusalSearch {
  /** The most events that the next batch may have. */
  limit(): number;
  /** Counts a refused event. @returns how many were refused in a row, without an accepted batch between them */
  countRefusal(): number;
  /** Notes that the sink accepted a batch. */
  accepted(): void;
  /** Notes that the log is delivered up to `seq`. */
  passed(seq: number): void;
  /**
   * Notes that the sink refused a batch.
   * @returns the refused event, or null if the search goes on with smaller batches
   */
  refused(events: readonly SinkEvent[]): SinkEvent | null;
  /** Ends the search: the refused event is parked. */
  found(): void;
}

export function createRefusalSearch(): RefusalSearch {
  let limit = Number.POSITIVE_INFINITY;
  /** The search covers the events up to this one. */
  let until = 0;
  let refusals = 0;

  function found(): void {
    limit = Number.POSITIVE_INFINITY;
    until = 0;
  }

  return {
    limit: () => limit,
    countRefusal: () => ++refusals,
    accepted: () => {
      refusals = 0;
    },
    passed: (seq) => {
      if (seq >= until) found();
    },
    refused: (events) => {
      const [first] = events;
      if (events.length > 1) {
        limit = Math.floor(events.length / 2);
        until = Math.max(until, events.at(-1)?.seq ?? 0);
        return null;
      }
      return first ?? null;
    },
    found,
  };
}
