import type { FetchTask, Page, Window } from '../../catalog/page.ts';
import { sourceTimeOf } from '../../catalog/watermark.ts';
import { createCatalogClient } from '../../client/catalog-client.ts';
import type { SourceConfig } from '../../config.ts';
import { CatchwordError } from '../../errors.ts';
import { duration, plural, SKEW_MS } from '../../report/text.ts';
import type { Store } from '../../store/store.ts';
import { createReadWindow } from '../../sync/fetch-page.ts';
import { mirrorPacer } from '../../sync/shared-pace.ts';
import type { CommandContext } from '../shared/context.ts';
import { toPerson } from '../shared/notices.ts';
import { examine, type Finding, failed, note, ok, type Result } from './finding.ts';

/** Products of one probe. */
const PROBE = 14;
/** Products of which the order is compared. */
const ORDER_PROBE = 100;
/** Time between two reads of the same page, so that an order that changes with each response shows. */
const BETWEEN_READS_MS = 200;
/** A longer pause that the source asks for is reported instead of waited for; milliseconds. */
const PATIENCE_MS = 60_000;
const UNKNOWN_VBID = 'catchword-probe-0';

type Ask = (window: Window, more?: Partial<FetchTask>) => ReturnType<ReturnType<typeof createReadWindow>>;

function keys(products: Page['products']): string[] {
  return products.map((product) => product?.vbid ?? '?');
}

async function responds(ask: Ask): Promise<Result> {
  const { page, response } = await ask({ page: 1, perPage: 1 });
  const tookMs = response.receivedAt - response.requestedAt;
  const answer = `${plural(page.envelope.numItems, 'product')}, answered in ${duration(tookMs)}`;
  if (response.sourceTime === null) {
    return note(`${answer}, without a Date header`, 'Keep the clock of this machine right: it is used instead.');
  }
  const skewMs = sourceTimeOf(response) - response.requestedAt;
  if (Math.abs(skewMs) < SKEW_MS) return ok(answer);
  const skew = `${duration(Math.abs(skewMs))} ${skewMs < 0 ? 'behind' : 'ahead of'} this machine's`;
  return note(`${answer}; its clock is ${skew}`, 'Nothing is lost: watermarks follow the clock of the source.');
}

/** Checks that page 2 of 7 is the second half of page 1 of 14. Otherwise windows cannot overlap. */
async function honoursPageSize(ask: Ask): Promise<Result> {
  const { page: first } = await ask({ page: 1, perPage: PROBE });
  const { page: second } = await ask({ page: 2, perPage: PROBE / 2 });
  const [one, other] = [first.envelope.perPage, second.envelope.perPage];
  if (one !== PROBE || other !== PROBE / 2) {
    return note(
      `asked for ${PROBE} and ${PROBE / 2} a page, it answers ${one} and ${other}`,
      'Full loads then read plain pages, and remove by confirmation only: see docs/page-drift.md.',
    );
  }
  if (first.products.length < PROBE) return ok('honoured; the catalog is too small for more checks');
  if (
    keys(second.products).join() ===
    keys(first.products)
      .slice(PROBE / 2)
      .join()
  )
    return ok('any size is honoured');
  return note(
    `page 2 of ${PROBE / 2} is not the second half of page 1 of ${PROBE}`,
    'Try again: the catalog may have changed. If this stays, no run can be proven complete.',
  );
}

async function keepsOrder(ask: Ask, wait: () => Promise<void>): Promise<Result> {
  const window = { page: 1, perPage: ORDER_PROBE };
  const first = keys((await ask(window)).page.products);
  await wait();
  const second = keys((await ask(window)).page.products);
  if (first.join() === second.join()) return ok('two reads of a page are the same');
  const before = first.filter((vbid) => second.includes(vbid));
  const after = second.filter((vbid) => first.includes(vbid));
  if (before.join() === after.join()) return ok('stable while the catalog changes');
  return note(
    'two reads of a page have different orders',
    'No run can be proven complete: products are removed by confirmation only.',
  );
}

async function findsProducts(ask: Ask, { lookupPath }: SourceConfig): Promise<Result> {
  if (lookupPath === undefined) return ok('not used (CATCHWORD_LOOKUP_PATH is not set)');
  const window = { page: 1, perPage: 1 };
  const [listed] = (await ask(window)).page.products;
  if (listed == null) return ok('the catalog is empty: nothing to look up');
  const finds = async (vbid: string): Promise<boolean> => (await ask(window, { vbid })).page.products.length === 1;
  const hint = `Correct CATCHWORD_LOOKUP_PATH (${lookupPath}), or remove it.`;
  if (!(await finds(listed.vbid))) return failed(`does not find ${listed.vbid}, which is listed`, hint);
  return (await finds(UNKNOWN_VBID)) ? failed('finds a product that does not exist', hint) : ok('finds what exists');
}

/**
 * Checks how the source behaves with about a dozen requests, at its rate limit.
 * @param mirror shares its rate limit; null if there is none
 */
export async function examineSource(
  { clock, signal, stderr }: CommandContext,
  config: SourceConfig,
  mirror: Store | null,
): Promise<Finding[]> {
  const pacer = mirrorPacer({ config, clock, tell: toPerson({ stderr }) }, mirror);
  const client = createCatalogClient(config, clock, pacer);
  const read = createReadWindow(client, config.deltaOverlapMs);
  const ask: Ask = async (window, more = {}) => {
    await pacer.acquire(signal, PATIENCE_MS);
    try {
      return await read({ mirror: '', runId: 0, pass: 0, window, from: null, maxAttempts: 1, ...more }, signal, 1);
    } catch (error) {
      const pauseMs = error instanceof CatchwordError ? (error.retryAfterMs ?? 0) : 0;
      if (pauseMs > 0) pacer.blockUntil(clock.now() + pauseMs);
      throw error;
    }
  };
  try {
    const response = await examine('source', () => responds(ask));
    if (response.level === 'failed') return [response];
    return [
      response,
      await examine('page size', () => honoursPageSize(ask)),
      await examine('order', () => keepsOrder(ask, () => clock.sleep(BETWEEN_READS_MS, signal))),
      await examine('lookup', () => findsProducts(ask, config)),
    ];
  } finally {
    await client.close();
  }
}
