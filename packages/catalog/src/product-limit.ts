/** How many products something may concern before it waits for a decision: a share of the mirror, or a number. */
export interface ProductLimit {
  readonly percent?: number | undefined;
  readonly products?: number | undefined;
}

/** In a small mirror a percentage is a handful of products, which may change on any day. */
const LEAST = 100;

/** @returns the limit as a number of products; a share counts as at least 100 */
export function limitOf({ percent = 0, products }: ProductLimit, living: number): number {
  return products ?? Math.max(LEAST, Math.floor((percent / 100) * living));
}
