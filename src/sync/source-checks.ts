import type { Clock } from '@catchword/base/clock';
import { CatchwordError } from '@catchword/base/errors';
import { objectMembers } from '@catchword/catalog/json-text';
import { productsOf } from '@catchword/catalog/page-items';
import type { FetchTask, Page, Window } from '@catchword/catalog/page-types';
import type { Doubt } from '@catchword/catalog/reasons';
import type { Pacer } from '@catchword/pace/pacer';
import type { CatalogClient } from 'catchword-client/catalog-client';
import { halves, unreadableDoubt } from './failed-window.ts';
import { createPageFetcher } from './fetch-page.ts';

const PROBE = 14;
/** Products of which the order is compared. */
const ORDER_PROBE = 100;
/** Time between two reads of the same page, so that an order that changes with each response shows. */
const BETWEEN_READS_MS = 200;
/** A longer pause that the source asks for is reported instead of waited for; milliseconds. */
const PATIENCE_MS = 60_000;
const UNKNOWN_VBID = 'catchword-probe-0';

function keys(page: Page): string[] {
  return productsOf(page).map((product) => product?.vbid ?? '?');
}

export interface ProbeOptions {
  readonly client: CatalogClient;
  readonly pacer: Pacer;
  readonly clock: Clock;
  readonly overlapMs: number;
  readonly signal: AbortSignal;
}

export type SourceProbe = ReturnType<typeof createSourceProbe>;

/** Answers questions about how a source behaves, with one to three requests each. */
export function createSourceProbe({ client, pacer, clock, overlapMs, signal }: ProbeOptions) {
  const read = createPageFetcher(client, overlapMs);

  async function ask(window: Window, more: Partial<FetchTask> = {}) {
    await pacer.acquire(signal, { patienceMs: PATIENCE_MS });
    try {
      const task = { mirror: '', runId: 0, pass: 0, window, from: null, maxAttempts: 1, ...more };
      const answer = await read(task, signal, 1);
      pacer.succeeded();
      return answer;
    } catch (error) {
      if (error instanceof CatchwordError) await pacer.heed(error);
      throw error;
    }
  }

  async function attempt(window: Window): Promise<Page | CatchwordError> {
    return await ask(window).then(
      ({ page }) => page,
      (error: unknown) => {
        if (error instanceof CatchwordError && !signal.aborted) return error;
        throw error;
      },
    );
  }

  /** The doubt about the narrowest window that is broken; null if the source does not answer at all. */
  async function brokenIn(window: Window, error: CatchwordError): Promise<Doubt | null> {
    if (error.code !== 'PAGE_BROKEN') return null;
    for (const half of window.perPage > 1 ? halves(window, 0) : []) {
      const found = await attempt(half);
      if (found instanceof CatchwordError) return await brokenIn(half, found);
    }
    return unreadableDoubt(window, error);
  }

  return {
    /** @returns `skewMs`: how far the answer's `Date` is ahead; null without one. `relay`: the headers of who passed it on */
    async respond() {
      const { page, response } = await ask({ page: 1, perPage: 1 });
      const { requestedAt, receivedAt, sourceTime, ageMs, isRelayed } = response;
      const skewMs = sourceTime === null ? null : sourceTime - receivedAt;
      const relay = [ageMs === undefined ? [] : 'Age', isRelayed ? 'Via' : []].flat();
      return { numItems: page.envelope.numItems, tookMs: receivedAt - requestedAt, skewMs, relay };
    },

    /**
     * Reads the first page of this size. @returns `refusal`: why it cannot be read; `broken`: which item breaks it; `rejected`: its items that are not valid products
     */
    async first(perPage: number) {
      const window = { page: 1, perPage };
      const whole = await attempt(window);
      if (!(whole instanceof CatchwordError)) return { refusal: null, broken: null, rejected: whole.rejected };
      return { refusal: whole, broken: await brokenIn(window, whole), rejected: [] };
    },

    /** Tests whether page 2 of 7 is the second half of page 1 of 14. Otherwise windows cannot overlap. */
    async divide() {
      const { page: whole } = await ask({ page: 1, perPage: PROBE });
      const { page: half } = await ask({ page: 2, perPage: PROBE / 2 });
      const secondHalf = keys(whole).slice(PROBE / 2);
      return {
        asked: [PROBE, PROBE / 2],
        /** Page sizes by the envelopes. */
        answered: [whole.envelope.perPage, half.envelope.perPage],
        isHalf: keys(half).join() === secondHalf.join(),
        isTooSmall: whole.items.count < PROBE,
      };
    },

    /** Compares two reads of a page; `same order` if only some products differ. */
    async repeat(): Promise<'same' | 'same order' | 'other order'> {
      const window = { page: 1, perPage: ORDER_PROBE };
      const first = keys((await ask(window)).page);
      await clock.sleep(BETWEEN_READS_MS, signal);
      const second = keys((await ask(window)).page);
      if (first.join() === second.join()) return 'same';
      const before = first.filter((vbid) => second.includes(vbid));
      const after = second.filter((vbid) => first.includes(vbid));
      return before.join() === after.join() ? 'same order' : 'other order';
    },

    /** How many products the source lists as changed since then, milliseconds since 1970. */
    tell: async (from: number): Promise<number> =>
      (await ask({ page: 1, perPage: 1 }, { from })).page.envelope.numItems,

    /** Members of a product of the list that a delta from this time on shows without them; null if both show no product. */
    async leftOut(from: number): Promise<{ vbid: string; missing: string[] } | null> {
      const window = { page: 1, perPage: ORDER_PROBE };
      const listed = productsOf((await ask(window)).page).flatMap((product) => product ?? []);
      const told = productsOf((await ask(window, { from })).page).flatMap((product) => product ?? []);
      const pairs = told.flatMap((one) =>
        listed.flatMap((two) => (two.vbid === one.vbid ? [[one, two] as const] : [])),
      );
      const found = pairs.map(([{ body }, { vbid, body: whole }]) => {
        const shown = objectMembers(body);
        return { vbid, missing: [...objectMembers(whole).keys()].filter((name) => !shown.has(name)) };
      });
      return found.find(({ missing }) => missing.length > 0) ?? found[0] ?? null;
    },

    /** Looks up a listed product, and one that does not exist. @returns null for an empty catalog */
    async lookUp() {
      const window = { page: 1, perPage: 1 };
      const [listed] = productsOf((await ask(window)).page);
      if (listed == null) return null;
      const finds = async (vbid: string) => (await ask(window, { vbid })).page.items.count === 1;
      const { vbid } = listed;
      return { vbid, findsListed: await finds(vbid), findsUnknown: await finds(UNKNOWN_VBID) };
    },
  };
}
