import type { FetchTask, Page, Window } from '../../catalog/page.ts';
import { sourceTimeOf } from '../../catalog/watermark.ts';
import { createCatalogClient } from '../../client/catalog-client.ts';
import type { SourceConfig } from '../../config.ts';
import { CatchwordError } from '../../errors.ts';
import type { Store } from '../../store/store.ts';
import { createReadWindow } from '../../sync/fetch-page.ts';
import { mirrorPacer } from '../../sync/shared-pace.ts';
import type { CommandContext } from '../shared/context.ts';
import { duration, plural, SKEW_MS } from '../shared/format.ts';
import { toPerson } from '../shared/notices.ts';

export type Level = 'ok' | 'note' | 'failed';

export interface Finding {
  readonly check: string;
  readonly level: Level;
  readonly text: string;
  readonly hint?: string;
}

/** Products of one probe. */
const PROBE = 14;
/** Between two readings of the same page: an order that is made up for each answer shows. */
const AGAIN_MS = 200;
/** No catalog has it. */
const NOBODY = 'catchword-probe-0';

type Sleep = () => Promise<void>;
type Ask = (window: Window, more?: Partial<FetchTask>) => ReturnType<ReturnType<typeof createReadWindow>>;

function keys(products: Page['products']): string {
  return products.map((product) => product?.vbid ?? '?').join(' ');
}

async function answers(ask: Ask): Promise<Finding> {
  const check = 'source';
  const { page, response } = await ask({ page: 1, perPage: 1 });
  const tookMs = response.receivedAt - response.requestedAt;
  const answer = `${plural(page.envelope.numItems, 'product')}, answered in ${duration(tookMs)}`;
  if (response.sourceTime === null) {
    return {
      ...{ check, level: 'note', text: `${answer}, without a Date` },
      hint: 'Local time less five minutes is used as its clock: keep this machine’s clock right.',
    };
  }
  const skewMs = sourceTimeOf(response) - response.requestedAt;
  // The watermark follows the source's clock, so nothing is lost either way.
  if (Math.abs(skewMs) < SKEW_MS) return { check, level: 'ok', text: answer };
  const off = `${duration(Math.abs(skewMs))} ${skewMs < 0 ? 'behind' : 'ahead of'} this machine's`;
  return {
    ...{ check, level: 'note', text: `${answer}; its clock is ${off}` },
    hint: 'Nothing is lost: watermarks follow its clock.',
  };
}

/** Does page 2 of 7 hold what stands at offsets 7 to 13? Without that, windows cannot overlap. */
async function pageSize(ask: Ask): Promise<Finding> {
  const check = 'page size';
  const first = await ask({ page: 1, perPage: PROBE });
  const second = await ask({ page: 2, perPage: PROBE / 2 });
  const asked = [PROBE, PROBE / 2];
  const answered = [first, second].map(({ page }) => page.envelope.perPage);
  if (asked.join() !== answered.join()) {
    return {
      ...{
        check,
        level: 'note',
        text: `asked for ${asked.join(' and ')} a page, it answers ${answered.join(' and ')}`,
      },
      hint: 'Full loads read plain pages then, prove nothing, and remove by confirmation only: see docs/page-drift.md.',
    };
  }
  if (first.page.products.length < PROBE)
    return { check, level: 'ok', text: 'honoured; the catalog is too small to say more' };
  if (keys(second.page.products) === keys(first.page.products.slice(PROBE / 2)))
    return { check, level: 'ok', text: 'any size is honoured, and pages of all sizes fit' };
  return {
    ...{ check, level: 'note', text: `page 2 of ${PROBE / 2} is not the second half of page 1 of ${PROBE}` },
    hint: 'The catalog may have changed in between: try again. If it stays so, no run can be proven complete.',
  };
}

async function order(ask: Ask, sleep: Sleep): Promise<Finding> {
  const check = 'order';
  const window = { page: 1, perPage: 100 };
  const first = await ask(window);
  await sleep();
  const again = await ask(window);
  if (keys(first.page.products) === keys(again.page.products))
    return { check, level: 'ok', text: 'two readings of a page are the same' };
  const there = new Set(again.page.products.map((product) => product?.vbid));
  const shared = first.page.products.map((product) => product?.vbid).filter((vbid) => there.has(vbid));
  const inOrder = again.page.products.map((product) => product?.vbid).filter((vbid) => shared.includes(vbid));
  if (shared.join() === inOrder.join()) return { check, level: 'ok', text: 'stable, while the catalog moves' };
  return {
    ...{ check, level: 'note', text: 'two readings of a page come in different orders' },
    hint: 'Without a stable order no run can be proven complete, and nothing is removed on its account.',
  };
}

const TIME_FIELDS = ['updated', 'updated_at', 'updated_on', 'modified', 'modified_at', 'last_modified'];

function timeOf(body: string): number | null {
  const fields = JSON.parse(body) as Record<string, unknown>;
  const text = TIME_FIELDS.map((name) => fields[name]).find((value) => typeof value === 'string');
  const time = typeof text === 'string' ? Date.parse(text) : Number.NaN;
  return Number.isNaN(time) ? null : time;
}

async function inclusive(ask: Ask): Promise<Finding> {
  const check = 'from';
  const { page } = await ask({ page: 1, perPage: PROBE });
  const product = page.products.find((one) => one !== null && timeOf(one.body) !== null);
  const time = product == null ? null : timeOf(product.body);
  if (product == null || time === null) {
    return {
      check,
      level: 'ok',
      text: 'may or may not include its own second, which its items do not show; both are right',
    };
  }
  const { page: since } = await ask({ page: 1, perPage: PROBE }, { from: time });
  const holds = since.products.some((one) => one?.vbid === product.vbid);
  return {
    check,
    level: 'ok',
    text: `${holds ? 'inclusive' : 'exclusive, or by another time than the item names'}; both are right`,
  };
}

async function lookup(ask: Ask, config: SourceConfig): Promise<Finding> {
  const check = 'lookup';
  const window = { page: 1, perPage: 1 };
  if (config.lookupPath === undefined) {
    return { check, level: 'ok', text: 'not used (CATCHWORD_LOOKUP_PATH is not set)' };
  }
  const [known] = (await ask(window)).page.products;
  if (known == null) return { check, level: 'ok', text: 'the catalog is empty: nothing to look up' };
  const found = (await ask(window, { vbid: known.vbid })).page.products.length === 1;
  const nobody = (await ask(window, { vbid: NOBODY })).page.products.length === 1;
  if (found && !nobody) return { check, level: 'ok', text: 'finds what is there, and nothing else' };
  return {
    ...{
      check,
      level: 'failed',
      text: found ? 'finds what is not there' : `does not find ${known.vbid}, which is listed`,
    },
    hint: `Check CATCHWORD_LOOKUP_PATH (${config.lookupPath}); it is not believed as it is.`,
  };
}

/** A pause of the source that is longer is reported, not waited for; milliseconds. */
const PATIENCE_MS = 60_000;

/**
 * Asks the source about a dozen requests, at its pace. A probe that fails ends in an error of its own.
 * @param here the mirror whose pace is kept; null where there is none
 */
export async function probeSource(
  context: CommandContext,
  config: SourceConfig,
  here: Store | null,
  examine: (check: string, work: () => Promise<Finding>) => Promise<Finding>,
): Promise<Finding[]> {
  const { clock, signal } = context;
  const pacer = mirrorPacer({ config, clock, tell: toPerson(context) }, here);
  const client = createCatalogClient(config, clock, pacer);
  const read = createReadWindow(client, config.deltaOverlapMs);
  const ask: Ask = async (window, more = {}) => {
    await pacer.acquire(signal, PATIENCE_MS);
    try {
      return await read({ mirror: '', runId: 0, pass: 0, window, from: null, maxAttempts: 1, ...more }, signal, 1);
    } catch (error) {
      const askedMs = error instanceof CatchwordError ? (error.retryAfterMs ?? 0) : 0;
      if (askedMs > 0) pacer.blockUntil(clock.now() + askedMs);
      throw error;
    }
  };
  try {
    const findings = [await examine('source', () => answers(ask))];
    if (findings[0]?.level === 'failed') return findings;
    findings.push(await examine('page size', () => pageSize(ask)));
    findings.push(await examine('order', () => order(ask, () => clock.sleep(AGAIN_MS, signal))));
    findings.push(await examine('from', () => inclusive(ask)));
    findings.push(await examine('lookup', () => lookup(ask, config)));
    return findings;
  } finally {
    await client.close();
  }
}
