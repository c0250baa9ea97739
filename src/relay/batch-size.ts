/** The most deliveries that a larger batch waits for. */
const MAX_PATIENCE = 16;

export type BatchSize = ReturnType<typeof createBatchSize>;

/**
 * Limits how many events a store gets at once after it did not answer in time; `mostEvents` in read-batch.ts asks for it. Such
 * a store gets half as many, down to one. After deliveries that succeed it gets half as many again; each time that fails, it
 * takes twice as many deliveries. A timeout says nothing about any event; see refusal-search.ts for refused events.
 */
export function createBatchSize() {
  let limit = Number.POSITIVE_INFINITY;
  /** Successful deliveries before the next larger batch. */
  let patience = 1;
  let succeeded = 0;
  let hasGrown = false;

  return {
    /** The most events that the next batch may have. */
    limit: () => limit,
    /** Handles a batch of `events` that timed out. @returns how many the next one may have */
    timedOut: (events: number): number => {
      if (hasGrown) patience = Math.min(patience * 2, MAX_PATIENCE);
      limit = Math.max(1, Math.floor(events / 2));
      succeeded = 0;
      hasGrown = false;
      return limit;
    },
    /** Notes a delivery. @param most as many as the sink takes. @returns whether the limit has ended with it */
    delivered: (events: number, most: number): boolean => {
      // A smaller batch does not show that a larger one would succeed.
      if (events < limit) return false;
      succeeded++;
      if (succeeded < patience) return false;
      succeeded = 0;
      hasGrown = true;
      limit += Math.ceil(limit / 2);
      if (limit < most) return false;
      limit = Number.POSITIVE_INFINITY;
      return true;
    },
  };
}
