import type { Clock } from '@catchword/base/clock';
import { CatchwordError } from '@catchword/base/errors';
import * as z from 'zod';
import type { SandboxOptions } from '../options.ts';
import { createProductStates, EVERYTHING, type Product, type TimeRange } from './product-states.ts';
import { createRandom, sample } from './random.ts';

const count = z.int().min(0).optional();
/** How many products to change. `seed`: the only source of the choice; default: the catalog's own. */
export const mutation = z.strictObject({ create: count, update: count, remove: count, seed: z.int().optional() });
export type Mutation = Readonly<z.infer<typeof mutation>>;

type Options = Pick<SandboxOptions, 'items' | 'seed' | 'order' | 'withdrawnForMs'>;

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
  const { items, order, withdrawnForMs } = options;
  const ownRandom = createRandom(options.seed);
  const { next, claim, skip, touch, ...states } = createProductStates(items, withdrawnForMs, clock.now());
  /** When offered products that are not always on sale are on sale. */
  const windows = new Map<number, TimeRange>();

  /** @param always whether a product that stays on sale is updated, too */
  function settle(index: number, { from, until }: TimeRange, always: boolean): void {
    const onSale = from <= states.latest() && states.latest() < until;
    if (onSale !== states.isLiving(index) || (onSale && always)) touch(index, onSale);
  }

  /** An offered product comes and goes at exactly the moments of the offer. Before every access, applies those passed. */
  function catchUp(): void {
    const [since, now] = [states.latest(), Math.max(states.latest(), clock.now())];
    const moments = [...windows.values()].flatMap(({ from, until }) => [from, until]);
    const passed = new Set(moments.filter((at) => at > since && at <= now).sort((a, b) => a - b));
    for (const at of passed) {
      states.advance(at);
      for (const [index, window] of windows) {
        if (window.from === at || window.until === at) settle(index, window, false);
      }
    }
    states.advance(now);
  }

  return {
    /**
     * Removes, then updates, then creates. One call never removes and updates the same product. Returns what was done,
     * which is less than asked if too few products live. @throws CatchwordError USAGE for too many products
     */
    mutate: ({ create = 0, update = 0, remove = 0, seed }: Mutation) => {
      states.reserve(create);
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
     * @param range null: living ones in the catalog's order; else all updated in it, oldest first, withdrawn ones too
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
    find: (index: number): Product | null => {
      catchUp();
      return states.find(index);
    },
    next,
    claim,
    skip,
    /** Notes an update of a product now, and when it is on sale. Its version stays. */
    offer: (index: number, window: TimeRange): void => {
      catchUp();
      if (window.from === EVERYTHING.from && window.until === EVERYTHING.until) windows.delete(index);
      else windows.set(index, window);
      settle(index, window, true);
    },
  };
}

export type Catalog = ReturnType<typeof createCatalog>;

const MIN_TICK_MS = 20;

/** Changes the catalog until the signal aborts. The seed alone decides what and in which order, the clock when. */
export async function churn(
  mutate: (mutation: Mutation) => void,
  { perSecond, seed, clock, signal }: { perSecond: number; seed: number; clock: Clock; signal: AbortSignal },
): Promise<void> {
  const random = createRandom(seed);
  const startedAt = clock.now();
  let done = 0;
  while (perSecond > 0 && !signal.aborted) {
    try {
      await clock.sleep(Math.max(MIN_TICK_MS, 1000 / perSecond), signal);
    } catch (error) {
      if (signal.aborted) return;
      throw error;
    }
    for (const due = ((clock.now() - startedAt) / 1000) * perSecond; done + 1 <= due; done++) {
      const chance = random();
      try {
        mutate(chance < 0.4 ? { update: 1 } : chance < 0.7 ? { create: 1 } : { remove: 1 });
      } catch (error) {
        // A change that cannot be journaled, as on a full disk, is skipped; the next one may succeed.
        if (!(error instanceof CatchwordError)) throw error;
      }
    }
  }
}
