/** Milliseconds since 1970, or infinite. Of a list, both ends are included; of a sale window, `until` is not. */
export interface TimeRange {
  readonly from: number;
  readonly until: number;
}

export const EVERYTHING: TimeRange = { from: Number.NEGATIVE_INFINITY, until: Number.POSITIVE_INFINITY };

export function isOnSale({ from, until }: TimeRange, now: number): boolean {
  return from <= now && now < until;
}

export function createSaleWindows() {
  const windows = new Map<number, TimeRange>();
  /** The first moment after the latest one at which a window begins or ends. */
  let next = Number.POSITIVE_INFINITY;

  function findNext(now: number): void {
    const turns = [...windows.values()].flatMap(({ from, until }) => [from, until]).filter((at) => at > now);
    next = turns.reduce((first, at) => Math.min(first, at), Number.POSITIVE_INFINITY);
  }

  return {
    set: (index: number, window: TimeRange, now: number): void => {
      if (window.from === EVERYTHING.from && window.until === EVERYTHING.until) windows.delete(index);
      else windows.set(index, window);
      findNext(now);
    },
    /** The next moment, up to `now`, at which windows begin or end, with the products of these; null if there is none. */
    takeTurn: (now: number) => {
      if (next > now) return null;
      const at = next;
      const products = [...windows]
        .filter(([, { from, until }]) => from === at || until === at)
        .map(([index, window]) => ({ index, onSale: isOnSale(window, at) }));
      findNext(at);
      return { at, products };
    },
  };
}
