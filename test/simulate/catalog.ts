import { hash, type Random } from '../../src/sandbox/random.ts';

/** `unstable`: another one for each response. `ties`: by a key that eight products share, in any order among them. */
export const ORDERS = ['id', 'anywhere', 'updated-asc', 'updated-desc', 'unstable', 'ties'] as const;
export type Order = (typeof ORDERS)[number];

/** A product as the source shows it. Times: `stamp` is the source's clock, `since` the world's. */
export interface Shown {
  readonly id: number;
  readonly version: number;
  /** The time of change that the source puts on it. */
  readonly stamp: number;
  /** Since when it has been shown like this. */
  readonly since: number;
  /** Since when it has been there without a break, in whatever version. */
  readonly livingSince: number;
  /** Told of as `distributable: false`; no longer in the listing. */
  readonly withdrawn: boolean;
}

export interface CatalogOptions {
  readonly order: Order;
  readonly inclusiveFrom: boolean;
  /** Times of change are kept in whole seconds. */
  readonly wholeSeconds: boolean;
  readonly random: Random;
  /** The world's clock, and the source's. */
  readonly now: () => number;
  readonly sourceNow: () => number;
}

export interface SimulatedCatalog {
  readonly living: ReadonlyMap<number, Shown>;
  /** What is told of as withdrawn. */
  readonly withdrawn: ReadonlyMap<number, Shown>;
  create(lagMs?: number): void;
  update(lagMs?: number): void;
  /** With a tombstone, deltas tell of it; without, it is simply not there any more. */
  remove(tombstone: boolean): void;
  restore(): void;
  forgetWithdrawn(): void;
  /** A piece of the listing at this moment. */
  list(offset: number, limit: number): Shown[];
  changedSince(fromMs: number): Shown[];
  readonly size: number;
}

export function createSimulatedCatalog(size: number, options: CatalogOptions): SimulatedCatalog {
  const { order, inclusiveFrom, wholeSeconds, random, now, sourceNow } = options;
  const living = new Map<number, Shown>();
  const withdrawn = new Map<number, Shown>();
  const listing: Shown[] = [];
  const gone: Shown[] = [];
  let nextId = 1;

  function keyOf({ id, stamp }: Shown): number {
    if (order === 'anywhere') return hash(7, id);
    if (order === 'updated-asc') return stamp;
    return order === 'updated-desc' ? -stamp : id;
  }

  function compare(a: Shown, b: Shown): number {
    return keyOf(a) - keyOf(b) || a.id - b.id;
  }

  /** Index of the first that does not stand before `product`. */
  function placeOf(product: Shown): number {
    let low = 0;
    let high = listing.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (compare(listing[middle] as Shown, product) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  function show(id: number, version: number, lagMs: number, livingSince = now()): void {
    const exact = sourceNow() - lagMs;
    const stamp = wholeSeconds ? Math.floor(exact / 1000) * 1000 : exact;
    const product: Shown = { id, version, stamp, since: now(), livingSince, withdrawn: false };
    living.set(id, product);
    listing.splice(placeOf(product), 0, product);
  }

  function hide(product: Shown): void {
    listing.splice(placeOf(product), 1);
    living.delete(product.id);
  }

  function shuffled(products: readonly Shown[]): Shown[] {
    const mixed = [...products];
    for (let at = mixed.length - 1; at > 0; at--) {
      const other = Math.floor(random() * (at + 1));
      [mixed[at], mixed[other]] = [mixed[other] as Shown, mixed[at] as Shown];
    }
    return mixed;
  }

  function tied(a: Shown | undefined, b: Shown | undefined): boolean {
    return a !== undefined && b !== undefined && a.id >> 3 === b.id >> 3;
  }

  function any(): Shown | undefined {
    return listing[Math.floor(random() * listing.length)];
  }

  const initial = sourceNow() - 40 * 86_400_000;
  for (let n = 0; n < size; n++) {
    const id = nextId++;
    const product: Shown = {
      id,
      version: 1,
      stamp: initial + n * 1000,
      since: now(),
      livingSince: now(),
      withdrawn: false,
    };
    living.set(id, product);
    listing.push(product);
  }
  listing.sort(compare);

  return {
    living,
    withdrawn,
    get size() {
      return listing.length;
    },
    create: (lagMs = 0) => show(nextId++, 1, lagMs),
    update: (lagMs = 0) => {
      const product = any();
      if (product === undefined) return;
      hide(product);
      show(product.id, product.version + 1, lagMs, product.livingSince);
    },
    remove: (tombstone) => {
      const product = any();
      if (product === undefined) return;
      hide(product);
      if (!tombstone) {
        gone.push(product);
        return;
      }
      const stamp = wholeSeconds ? Math.floor(sourceNow() / 1000) * 1000 : sourceNow();
      withdrawn.set(product.id, { ...product, version: product.version + 1, stamp, since: now(), withdrawn: true });
    },
    restore: () => {
      // What was simply not there comes back as it was.
      const back = random() < 0.5 ? gone.pop() : undefined;
      if (back !== undefined) {
        show(back.id, back.version, 0);
        return;
      }
      const [product] = withdrawn.values();
      if (product === undefined) return;
      withdrawn.delete(product.id);
      show(product.id, product.version + 1, 0);
    },
    forgetWithdrawn: () => withdrawn.clear(),
    list: (offset, limit) => {
      if (order === 'unstable') return shuffled(listing).slice(offset, offset + limit);
      if (order !== 'ties') return listing.slice(offset, offset + limit);
      const end = Math.min(offset + limit, listing.length);
      let [low, high] = [Math.min(offset, end), end];
      while (low > 0 && tied(listing[low - 1], listing[low])) low--;
      while (high > 0 && high < listing.length && tied(listing[high - 1], listing[high])) high++;
      const pieces: Shown[] = [];
      for (let at = low; at < high; ) {
        let next = at + 1;
        while (next < high && tied(listing[at], listing[next])) next++;
        pieces.push(...shuffled(listing.slice(at, next)));
        at = next;
      }
      return pieces.slice(offset - low, end - low);
    },
    changedSince: (fromMs) =>
      [...living.values(), ...withdrawn.values()]
        .filter(({ stamp }) => (inclusiveFrom ? stamp >= fromMs : stamp > fromMs))
        .sort((a, b) => a.stamp - b.stamp || a.id - b.id),
  };
}
