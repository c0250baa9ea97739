import { hash, type Random } from '../../src/sandbox/catalog/random.ts';

/**
 * Orders of the list. `anywhere`: new products are inserted anywhere. `scattered`: modified products move anywhere too.
 * `unstable`: each response has another order. `ties`: by a key that eight products share, in any order among these.
 */
export const ORDERS = ['id', 'anywhere', 'updated-asc', 'updated-desc', 'unstable', 'ties', 'scattered'] as const;
export type Order = (typeof ORDERS)[number];

/** A product as the source shows it. `stamp` is by the source's clock, the other times are by the world's. */
export interface Shown {
  readonly id: number;
  readonly version: number;
  /** The source's time of change. */
  readonly stamp: number;
  /** Since when it has been shown in this version. */
  readonly since: number;
  /** Since when it has been listed without interruption, in any version. */
  readonly livingSince: number;
  /** Announced as `distributable: false`, and no longer in the list. */
  readonly withdrawn: boolean;
}

export interface CatalogOptions {
  readonly order: Order;
  readonly inclusiveFrom: boolean;
  /** Whether times of change are in whole seconds. */
  readonly wholeSeconds: boolean;
  readonly random: Random;
  /** The world's clock and the source's. */
  readonly now: () => number;
  readonly sourceNow: () => number;
}

/** The catalog as one machine of the source shows it. */
export interface CatalogView {
  readonly living: ReadonlyMap<number, Shown>;
  /** Products announced as withdrawn. */
  readonly withdrawn: ReadonlyMap<number, Shown>;
  /** A part of the list at this moment. */
  list(offset: number, limit: number): Shown[];
  changedSince(fromMs: number): Shown[];
}

export type SimulatedCatalog = ReturnType<typeof createSimulatedCatalog>;

/** One step of a change. */
interface Event {
  readonly kind: 'show' | 'hide' | 'withdraw' | 'restore';
  readonly product: Shown;
}

function createView(initial: readonly Shown[], { order, inclusiveFrom, random }: CatalogOptions) {
  const living = new Map(initial.map((product) => [product.id, product]));
  const withdrawn = new Map<number, Shown>();
  const listing = [...initial].sort(compare);

  function keyOf({ id, version, stamp }: Shown): number {
    if (order === 'anywhere') return hash(7, id);
    if (order === 'scattered') return hash(version, id);
    if (order === 'updated-asc') return stamp;
    return order === 'updated-desc' ? -stamp : id;
  }

  function compare(a: Shown, b: Shown): number {
    return keyOf(a) - keyOf(b) || a.id - b.id;
  }

  /** Index of the first product that does not precede `product`. */
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

  function apply({ kind, product }: Event): void {
    if (kind === 'show') {
      living.set(product.id, product);
      listing.splice(placeOf(product), 0, product);
    } else if (kind === 'hide') {
      listing.splice(placeOf(product), 1);
      living.delete(product.id);
    } else if (kind === 'withdraw') withdrawn.set(product.id, product);
    else withdrawn.delete(product.id);
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

  return {
    living,
    withdrawn,
    listing,
    apply,
    list: (offset: number, limit: number): Shown[] => {
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
    changedSince: (fromMs: number): Shown[] =>
      [...living.values(), ...withdrawn.values()]
        .filter(({ stamp }) => (inclusiveFrom ? stamp >= fromMs : stamp > fromMs))
        .sort((a, b) => a.stamp - b.stamp || a.id - b.id),
  };
}

export function createSimulatedCatalog(size: number, options: CatalogOptions) {
  const { wholeSeconds, random, now, sourceNow } = options;
  const begin = now();
  const oldest = sourceNow() - 40 * 86_400_000;
  const first = { version: 1, since: begin, livingSince: begin, withdrawn: false };
  const initial = Array.from({ length: size }, (_, n): Shown => ({ ...first, id: n + 1, stamp: oldest + n * 1000 }));
  const fresh = createView(initial, options);
  /** The history of changes, for machines that show them later. */
  const journal: { readonly at: number; readonly event: Event }[] = [];
  const replicas = new Map<number, { readonly view: ReturnType<typeof createView>; done: number }>();
  const gone: Shown[] = [];
  let nextId = size + 1;

  function happen(event: Event): void {
    fresh.apply(event);
    journal.push({ at: now(), event });
  }

  function stampOf(exactMs: number): number {
    return wholeSeconds ? Math.floor(exactMs / 1000) * 1000 : exactMs;
  }

  function show(id: number, version: number, lagMs: number, livingSince = now()): void {
    const stamp = stampOf(sourceNow() - lagMs);
    happen({ kind: 'show', product: { id, version, stamp, since: now(), livingSince, withdrawn: false } });
  }

  function any(): Shown | undefined {
    return fresh.listing[Math.floor(random() * fresh.listing.length)];
  }

  return {
    ...(fresh satisfies CatalogView),
    create: (lagMs = 0): void => show(nextId++, 1, lagMs),
    update: (lagMs = 0): void => {
      const product = any();
      if (product === undefined) return;
      happen({ kind: 'hide', product });
      show(product.id, product.version + 1, lagMs, product.livingSince);
    },
    /** Removes a product. With a tombstone, deltas announce it; without, it is just no longer listed. */
    remove: (tombstone: boolean): void => {
      const product = any();
      if (product === undefined) return;
      happen({ kind: 'hide', product });
      if (!tombstone) {
        gone.push(product);
        return;
      }
      const stamp = stampOf(sourceNow());
      const version = product.version + 1;
      happen({ kind: 'withdraw', product: { ...product, version, stamp, since: now(), withdrawn: true } });
    },
    restore: (): void => {
      // A product removed without a tombstone returns unchanged.
      const back = random() < 0.5 ? gone.pop() : undefined;
      if (back !== undefined) {
        show(back.id, back.version, 0);
        return;
      }
      const [product] = fresh.withdrawn.values();
      if (product === undefined) return;
      happen({ kind: 'restore', product });
      show(product.id, product.version + 1, 0);
    },
    /** The catalog as it was `lagMs` ago; call this for each request. */
    behind: (lagMs: number): CatalogView => {
      const replica = replicas.get(lagMs) ?? { view: createView(initial, options), done: 0 };
      replicas.set(lagMs, replica);
      for (; replica.done < journal.length; replica.done++) {
        const next = journal[replica.done];
        if (next === undefined || next.at > now() - lagMs) break;
        replica.view.apply(next.event);
      }
      return replica.view;
    },
  };
}
