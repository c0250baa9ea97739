import * as z from 'zod';
import type { Clock } from '../../base/clock.ts';
import { CatchwordError } from '../../base/errors.ts';
import type { SandboxOptions } from '../options.ts';
import { MAX_PRODUCTS } from './product-numbers.ts';
import { createProductStates, EVERYTHING, type Product, type TimeRange } from './product-states.ts';
import { createRandom, sample } from './random.ts';

const count = z.int().min(0).optional();
/** How many products to change. `seed`: the only source of the choice; default: the catalog's own. */
export const mutation = z.strictObject({ create: count, update: count, remove: count, seed: z.int().optional() });
export type Mutation = Readonly<z.infer<typeof mutation>>;

type Options = Pick<SandboxOptions, 'items' | 'seed' | 'order' | 'withdrawnForMs'>;

const INITIAL_AGE_MS = 30 * 86_400_000;

function tooMany(): CatchwordError {
  return new CatchwordError('USAGE', `the sandbox holds at most ${MAX_PRODUCTS} products`);
}

function isOnSale({ from, until }: TimeRange, now: number): boolean {
  return from <= now && now < until;
}

/**
 * The states of all products now. An offered product comes and goes at exactly the moments of the offer: `catchUp` applies
 * the moments that have passed, in order, and comes before every access.
 */
function createCurrentStates({ items, withdrawnForMs }: Options, clock: Pick<Clock, 'now'>) {
  /** Of the offered products that are not always on sale. */
  const windows = new Map<number, TimeRange>();
  let latest = clock.now();
  const states = createProductStates(items, latest - INITIAL_AGE_MS - items, withdrawnForMs);

  function touch(index: number, isLiving: boolean, versions = 0): void {
    states.set({ index, version: states.versionOf(index) + versions, updatedAt: latest, withdrawn: !isLiving });
  }

  function advance(to: number): void {
    latest = to;
    states.forgetWithdrawn(to);
  }

  function catchUp(): void {
    const now = Math.max(latest, clock.now());
    const moments = [...windows.values()].flatMap(({ from, until }) => [from, until]);
    const passed = new Set(moments.filter((at) => at > latest && at <= now).sort((a, b) => a - b));
    for (const at of passed) {
      advance(at);
      for (const [index, window] of windows) {
        const onSale = isOnSale(window, at);
        if ((window.from === at || window.until === at) && onSale !== states.isLiving(index)) touch(index, onSale);
      }
    }
    advance(now);
  }

  return {
    ...states,
    touch,
    catchUp,
    /** Notes an update of a product now, and when it is on sale. Its version stays. */
    offer: (index: number, window: TimeRange): void => {
      catchUp();
      if (window.from === EVERYTHING.from && window.until === EVERYTHING.until) windows.delete(index);
      else windows.set(index, window);
      const onSale = isOnSale(window, latest);
      if (onSale || states.isLiving(index)) touch(index, onSale);
    },
  };
}

/**
 * Which products exist, in which version and order. Their content is a pure function (`catalog-item.ts`).
 *
 * A product is *living*, then *withdrawn* for a while (included in deltas and found by point lookup), then gone. A
 * claimed product is not there at all until it is offered for sale. An offered product lives while it is on sale.
 * Offered again, it comes back.
 * @throws CatchwordError USAGE for more than 20 million products
 * @rule 2.1-25..26
 */
export function createCatalog(options: Options, clock: Pick<Clock, 'now'>) {
  const { items, order } = options;
  if (items > MAX_PRODUCTS) throw tooMany();
  const ownRandom = createRandom(options.seed);
  const { touch, catchUp, offer, ...states } = createCurrentStates(options, clock);

  /**
   * Returns the index of a new product, which is not there until it is offered.
   * @throws CatchwordError USAGE if the catalog would hold more than 20 million products in its life
   */
  function claim(): number {
    if (states.total() >= MAX_PRODUCTS) throw tooMany();
    return states.claim();
  }

  return {
    get living() {
      catchUp();
      return states.livingCount();
    },
    /** Number of withdrawn products that deltas still include. */
    get withdrawn() {
      catchUp();
      return states.withdrawnCount();
    },
    /**
     * Removes, then updates, then creates. One call never removes and updates the same product. Returns what was done,
     * which is less than asked if too few products live, and how many live now.
     * @throws CatchwordError USAGE if the catalog would hold more than 20 million products in its life
     */
    mutate: ({ create = 0, update = 0, remove = 0, seed }: Mutation) => {
      if (states.total() + create > MAX_PRODUCTS) throw tooMany();
      catchUp();
      const random = seed === undefined ? ownRandom : createRandom(seed);
      const removed = remove === 0 ? [] : sample(random, remove, states.byIndex());
      for (const index of removed) touch(index, false);
      const updated = update === 0 ? [] : sample(random, update, states.byIndex());
      for (const index of updated) touch(index, true, 1);
      for (let n = 0; n < create; n++) touch(claim(), true);
      return { created: create, updated: updated.length, removed: removed.length, living: states.livingCount() };
    },
    /**
     * Returns up to `limit` products from `offset` on, and how many there are in all.
     * @param range null: the living products in the catalog's order; else all that were updated in the range, oldest
     *   update first, including withdrawn ones
     */
    list: (range: TimeRange | null, offset: number, limit: number) => {
      catchUp();
      const indices = range === null && order === 'id' ? states.byIndex() : states.byUpdate(range);
      const count = indices.length;
      const newestFirst = range === null && order === 'updated-desc';
      const page = newestFirst
        ? indices.slice(Math.max(0, count - offset - limit), Math.max(0, count - offset)).reverse()
        : indices.slice(offset, offset + limit);
      return { count, products: page.map(states.at) };
    },
    /** Null for a product that does not exist yet, or no longer. */
    find: (index: number): Product | null => {
      catchUp();
      return states.find(index);
    },
    next: states.next,
    claim,
    skip: states.skip,
    offer,
  };
}

export type Catalog = ReturnType<typeof createCatalog>;
