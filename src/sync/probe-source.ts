import type { FetchTask, Page, Window } from '../catalog/page.ts';
import { sourceTimeOf } from '../catalog/watermark.ts';
import type { CatalogClient } from '../client/catalog-client.ts';
import type { Clock } from '../clock.ts';
import { CatchwordError } from '../errors.ts';
import type { Pacer } from '../pacer.ts';
import { createReadWindow } from './fetch-page.ts';

/** Products of one probe. */
const PROBE = 14;
/** Products of which the order is compared. */
const ORDER_PROBE = 100;
/** Time between two reads of the same page, so that an order that changes with each response shows. */
const BETWEEN_READS_MS = 200;
/** A longer pause that the source asks for is reported instead of waited for; milliseconds. */
const PATIENCE_MS = 60_000;
const UNKNOWN_VBID = 'catchword-probe-0';

/** Questions about how a source behaves. Each method sends one to three requests. */
export interface SourceProbe {
  /** @returns `skewMs`: how far the source's clock is ahead; null without a Date header */
  respond(): Promise<{ readonly numItems: number; readonly tookMs: number; readonly skewMs: number | null }>;
  /** Whether page 2 of 7 is the second half of page 1 of 14. Otherwise windows cannot overlap. */
  divide(): Promise<{
    readonly asked: readonly number[];
    /** Page sizes by the envelopes. */
    readonly answered: readonly number[];
    readonly isHalf: boolean;
    readonly isTooSmall: boolean;
  }>;
  /** Whether two reads of a page are the same, or at least list the products of both in the same order. */
  repeat(): Promise<'same' | 'same order' | 'other order'>;
  /** Whether a point lookup finds a listed product, and one that does not exist. @returns null for an empty catalog */
  lookUp(): Promise<{ readonly vbid: string; readonly findsListed: boolean; readonly findsUnknown: boolean } | null>;
}

function keys(products: Page['products']): string[] {
  return products.map((product) => product?.vbid ?? '?');
}

export interface ProbeOptions {
  readonly client: CatalogClient;
  readonly pacer: Pacer;
  readonly clock: Clock;
  readonly overlapMs: number;
  readonly signal: AbortSignal;
}

export function createSourceProbe({ client, pacer, clock, overlapMs, signal }: ProbeOptions): SourceProbe {
  const read = createReadWindow(client, overlapMs);

  async function ask(window: Window, more: Partial<FetchTask> = {}) {
    await pacer.acquire(signal, PATIENCE_MS);
    try {
      return await read({ mirror: '', runId: 0, pass: 0, window, from: null, maxAttempts: 1, ...more }, signal, 1);
    } catch (error) {
      const pauseMs = error instanceof CatchwordError ? (error.retryAfterMs ?? 0) : 0;
      if (pauseMs > 0) pacer.blockUntil(clock.now() + pauseMs);
      throw error;
    }
  }

  return {
    respond: async () => {
      const { page, response } = await ask({ page: 1, perPage: 1 });
      const { requestedAt, receivedAt, sourceTime } = response;
      const skewMs = sourceTime === null ? null : sourceTimeOf(response) - requestedAt;
      return { numItems: page.envelope.numItems, tookMs: receivedAt - requestedAt, skewMs };
    },
    divide: async () => {
      const asked = [PROBE, PROBE / 2];
      const { page: whole } = await ask({ page: 1, perPage: PROBE });
      const { page: half } = await ask({ page: 2, perPage: PROBE / 2 });
      return {
        asked,
        answered: [whole.envelope.perPage, half.envelope.perPage],
        isHalf: keys(half.products).join() === keys(whole.products.slice(PROBE / 2)).join(),
        isTooSmall: whole.products.length < PROBE,
      };
    },
    repeat: async () => {
      const window = { page: 1, perPage: ORDER_PROBE };
      const first = keys((await ask(window)).page.products);
      await clock.sleep(BETWEEN_READS_MS, signal);
      const second = keys((await ask(window)).page.products);
      if (first.join() === second.join()) return 'same';
      const before = first.filter((vbid) => second.includes(vbid));
      const after = second.filter((vbid) => first.includes(vbid));
      return before.join() === after.join() ? 'same order' : 'other order';
    },
    lookUp: async () => {
      const window = { page: 1, perPage: 1 };
      const [listed] = (await ask(window)).page.products;
      if (listed == null) return null;
      const finds = async (vbid: string) => (await ask(window, { vbid })).page.products.length === 1;
      return {
        vbid: listed.vbid,
        findsListed: await finds(listed.vbid),
        findsUnknown: await finds(UNKNOWN_VBID),
      };
    },
  };
}
