import { hash, type Random } from '@catchword/sandbox/catalog/random';

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
  /** Its time of change does not say when it was changed, so that a delta may not show it. */
  readonly silent: boolean;
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
  /** Share of products that the list has twice, at two places. */
  readonly twice?: number;
  /** Whether the time of a change that happens now does not say when it happened. */
  readonly isSilent?: () => boolean;
}

/** The catalog as one machine of the source shows it. */
export interface CatalogView {
  readonly living: ReadonlyMap<number, Shown>;
  /** Products announced as withdrawn. */
  readonly withdrawn: ReadonlyMap<number, Shown>;
  /** A part of the list at this moment. */
  list(offset: number, limit: number): Shown[];
  changedSince(fromMs: number): Shown[];
  count(): number;
}

/** A machine that shows the catalog later. */
interface Replica {
  readonly view: ReturnType<typeof createView>;
  /** How many events of the journal it has taken. */
  done: number;
  /** Taken, but not shown yet. */
  waiting: { readonly due: number; readonly event: Event }[];
}

export type SimulatedCatalog = ReturnType<typeof createSimulatedCatalog>;

/** One step of a change. */
interface Event {
  readonly kind: 'show' | 'hide' | 'withdraw' | 'restore';
  readonly product: Shown;
}

/** A share from 0 to 1, always the same for a product. */
function shareOf(seed: number, id: number): number {
  return (hash(seed, id) % 65_536) / 65_536;
}

function createView(initial: readonly Shown[], options: CatalogOptions) {
  const { order, inclusiveFrom, random, twice = 0 } = options;
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

  /** The list with the second places of its products. */
  function doubled(): Shown[] {
    const again = listing.filter(({ id }) => shareOf(17, id) < twice);
    const most = listing.at(-1);
    const keyed = listing.map((product) => ({ product, key: keyOf(product) }));
    const width = Math.max(1, most === undefined ? 1 : keyOf(most));
    for (const product of again) keyed.push({ product, key: shareOf(19, product.id) * width });
    return keyed.sort((a, b) => a.key - b.key || a.product.id - b.product.id).map(({ product }) => product);
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
      if (twice > 0) return doubled().slice(offset, offset + limit);
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
    /** Number of items in the list. */
    count: (): number => (twice > 0 ? doubled().length : listing.length),
    changedSince: (fromMs: number): Shown[] =>
      [...living.values(), ...withdrawn.values()]
        .filter(({ stamp }) => (inclusiveFrom ? stamp >= fromMs : stamp > fromMs))
        .sort((a, b) => a.stamp - b.stamp || a.id - b.id),
  };
}

interface JournalEntry {
  readonly at: number;
  readonly event: Event;
}

/** Makes the machines that show the catalog later. */
function createReplicas(initial: readonly Shown[], options: CatalogOptions, journal: readonly JournalEntry[]) {
  const { now } = options;
  const replicas = new Map<string, Replica>();
  /**
   * The catalog of `lagMs` ago; call this for each request.
   * @param spreadMs each product's changes are shown later by a time of its own, up to this
   */
  return (lagMs: number, spreadMs = 0): CatalogView => {
    const key = `${lagMs} ${spreadMs}`;
    const replica = replicas.get(key) ?? { view: createView(initial, options), done: 0, waiting: [] };
    replicas.set(key, replica);
    for (; replica.done < journal.length; replica.done++) {
      const next = journal[replica.done];
      if (next === undefined || next.at > now() - lagMs) break;
      const due = next.at + lagMs + spreadMs * shareOf(23, next.event.product.id);
      replica.waiting.push({ due, event: next.event });
    }
    const shown = replica.waiting.filter(({ due }) => due <= now()).sort((a, b) => a.due - b.due);
    replica.waiting = replica.waiting.filter(({ due }) => due > now());
    for (const { event } of shown) replica.view.apply(event);
    return replica.view;
  };
}

export function createSimulatedCatalog(size: number, options: CatalogOptions) {
  const { wholeSeconds, random, now, sourceNow, isSilent = () => false } = options;
  const begin = now();
  const oldest = sourceNow() - 40 * 86_400_000;
  const first = { version: 1, since: begin, livingSince: begin, withdrawn: false, silent: false };
  const initial = Array.from({ length: size }, (_, n): Shown => ({ ...first, id: n + 1, stamp: oldest + n * 1000 }));
  const fresh = createView(initial, options);
  /** The history of changes, for machines that show them later. */
  const journal: JournalEntry[] = [];
  let gone: Shown[] = [];
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
    happen({
      kind: 'show',
      product: { id, version, stamp, since: now(), livingSince, withdrawn: false, silent: isSilent() },
    });
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
      happen({
        kind: 'withdraw',
        product: { ...product, version, stamp, since: now(), withdrawn: true, silent: isSilent() },
      });
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
    /** Changes a share of all products at once: each by the same kind of change. */
    bulk: (kind: 'update' | 'create' | 'remove', share: number): void => {
      const stamp = stampOf(sourceNow());
      const more = { stamp, since: now(), withdrawn: false, silent: isSilent() };
      for (const product of [...fresh.living.values()].filter(() => random() < share)) {
        if (kind === 'create') {
          happen({ kind: 'show', product: { ...more, id: nextId++, version: 1, livingSince: now() } });
          continue;
        }
        happen({ kind: 'hide', product });
        if (kind === 'update') happen({ kind: 'show', product: { ...product, ...more, version: product.version + 1 } });
      }
    },
    /** Restores the catalog of `backMs` ago, with the times of change that its products had then. */
    restoreBackup: (backMs: number): void => {
      const old = createView(initial, options);
      for (const { at, event } of journal) if (at <= now() - backMs) old.apply(event);
      const living = [...fresh.living.values()];
      for (const product of living) {
        const was = old.living.get(product.id);
        if (was?.version === product.version && was.stamp === product.stamp) continue;
        happen({ kind: 'hide', product });
        const { livingSince } = product;
        if (was) happen({ kind: 'show', product: { ...was, since: now(), livingSince, silent: true } });
      }
      for (const was of old.living.values()) {
        if (fresh.living.has(was.id)) continue;
        happen({ kind: 'show', product: { ...was, since: now(), livingSince: now(), silent: true } });
      }
      for (const product of fresh.withdrawn.values()) {
        if (!old.withdrawn.has(product.id)) happen({ kind: 'restore', product });
      }
      for (const was of old.withdrawn.values()) {
        if (!fresh.withdrawn.has(was.id)) happen({ kind: 'withdraw', product: { ...was, since: now(), silent: true } });
      }
      gone = [];
      nextId = 1 + Math.max(0, ...old.living.keys(), ...old.withdrawn.keys());
    },
    behind: createReplicas(initial, options, journal),
  };
}
