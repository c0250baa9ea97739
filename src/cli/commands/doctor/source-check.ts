import type { SourceConfig } from '@catchword/settings/config';
import { createCatalogClient } from 'catchword-client/catalog-client';
import { deltaFrom } from '../../../proof/watermark.ts';
import { reasonText } from '../../../report/reason-text.ts';
import { count, duration, plural, SKEW_MS, time } from '../../../report/text.ts';
import { findProduct } from '../../../store/rows/find-product.ts';
import type { Store } from '../../../store/store.ts';
import { createSourceProbe, type SourceProbe } from '../../../sync/source-checks.ts';
import type { CommandContext } from '../shared/command-context.ts';
import { openPace } from '../shared/service-connection.ts';
import { examine, type Finding, failed, note, ok, type Result } from './finding.ts';

async function checkResponse(probe: SourceProbe): Promise<Result> {
  const { numItems, tookMs, skewMs, relay } = await probe.respond();
  const answer = `${plural(numItems, 'product')}, answered in ${duration(tookMs)}`;
  if (skewMs === null) {
    return note(`${answer}, without a Date header`, 'Keep the clock of this machine right: it is used instead.');
  }
  if (Math.abs(skewMs) < SKEW_MS) return ok(answer);
  const skew = `${duration(Math.abs(skewMs))} ${skewMs < 0 ? 'behind' : 'ahead of'} this machine's clock`;
  const by = relay.length === 0 ? '' : `; a proxy or a cache passed it on (${relay.join(', ')})`;
  // Which clock wrote the header, and which one notes when products change, no answer says.
  const hint =
    'Deltas ask for what changed since Date. If the clock that notes changes is behind it, as when a proxy wrote Date, ' +
    'they miss changes until the next full load, and a sealed run may be wrong. Ask the service.';
  return note(`${answer}; its Date is ${skew}${by}`, hint);
}

type FirstPage = Awaited<ReturnType<SourceProbe['first']>>;

/** What a run says of the first page's items. */
function checkItems({ refusal, broken, rejected }: FirstPage): Result {
  const hint = 'Full runs read everything else, and are open because of it. Report it to the operator of the service.';
  if (broken !== null) return note(reasonText(broken), hint);
  if (refusal !== null) return note('not looked at: the first page cannot be read', 'See page size.');
  const [first] = rejected;
  if (first === undefined) return ok('the first page has only valid products');
  const found = `${plural(rejected.length, 'item')} of the first page cannot be used`;
  return note(`${found}: at offset ${first.position}, ${first.reason}`, hint);
}

const UNREADABLE = note('not compared, because the first page cannot be read', 'See items.');

async function checkPageSize(probe: SourceProbe, { perPage }: SourceConfig, first: FirstPage): Promise<Result> {
  const { refusal, broken } = first;
  if (broken !== null) return UNREADABLE;
  if (refusal !== null) {
    const hint =
      'Runs try smaller pages by themselves. To save these requests, set CATCHWORD_PER_PAGE to what it answers.';
    return note(`a page of ${plural(perPage, 'product')} cannot be read: ${refusal.message}`, hint);
  }
  const { asked, answered, isHalf, isTooSmall } = await probe.divide();
  if (asked.join() !== answered.join()) {
    const hint = 'Full loads then read plain pages, and remove by confirmation only: see docs/page-drift.md.';
    return note(`asked for ${asked.join(' and ')} a page, it answers ${answered.join(' and ')}`, hint);
  }
  if (isTooSmall) return ok('honoured; the catalog is too small for more checks');
  if (isHalf) return ok('any size is honoured');
  const [whole, half] = asked;
  const hint = 'Try again: the catalog may have changed. If this stays, no run can be proven complete.';
  return note(`page 2 of ${half} is not the second half of page 1 of ${whole}`, hint);
}

async function checkOrder(probe: SourceProbe, { broken }: FirstPage): Promise<Result> {
  if (broken !== null) return UNREADABLE;
  const order = await probe.repeat();
  if (order === 'same') return ok('two reads of a page are the same');
  if (order === 'same order') return ok('stable while the catalog changes');
  const hint = 'No run can be proven complete: products are removed by confirmation only.';
  return note('two reads of a page have different orders', hint);
}

/** The future by every clock and in every zone. */
const AHEAD_MS = 2 * 86_400_000;
const LONG_AGO = Date.UTC(2000, 0, 1);

/** Changes that are searched for one that a delta must show. */
const NEWEST = 100;

/** The start of a delta that must show a change which the mirror has; null if it knows none. */
function toldSince(mirror: Store, { deltaOverlapMs, untoldFields }: SourceConfig) {
  const { changes } = mirror.changes.list(NEWEST);
  // No delta shows a product that is gone.
  const newest = changes.find(({ op, vbid }) => op !== 'removed' && findProduct(mirror, vbid)?.removedAt === null);
  const run = newest && mirror.runs.get(newest.runId);
  if (run === undefined || (run.kind === 'full' && untoldFields.length > 0)) return null;
  const before = mirror.runs.list(NEWEST).find(({ id, proof }) => id < run.id && proof === 'sealed');
  const { selectionOf } = mirror.runs;
  // Other settings change products, too.
  if (before === undefined || before.sourceTime === null || selectionOf(before.id) !== selectionOf(run.id)) return null;
  return { from: deltaFrom(before.sourceTime, deltaOverlapMs), run: run.id };
}

/** Whether deltas show what changed, and nothing else. */
async function checkDeltas(
  probe: SourceProbe,
  config: SourceConfig,
  mirror: Store | null,
  nowMs: number,
  { broken }: FirstPage,
) {
  const { numItems } = await probe.respond();
  const hint =
    'Full loads notice what deltas do not tell. Ask the service which changes deltas show, and by which clock.';
  const ahead = await probe.tell(nowMs + AHEAD_MS);
  const part = broken === null ? await probe.leftOut(LONG_AGO) : null;
  const isPart = part !== null && part.missing.length > 0;
  const without = isPart ? `deltas show ${part.vbid} without ${part.missing.join(', ')}, which the list shows` : '';
  if (ahead > 0) {
    const shown = `a delta from the day after tomorrow shows ${plural(ahead, 'product')}`;
    return note(isPart ? `${shown}; ${without}` : shown, hint);
  }
  const all = await probe.tell(LONG_AGO);
  const told = `none is of the future; ${plural(all, 'product')} since 2000`;
  if (all === 0 && numItems > 0) return note(`a delta from the year 2000 is empty`, hint);
  if (isPart) {
    const advice =
      'Until deltas show whole products, such changes arrive with the next full load. Ask the service for it.';
    return note(without, advice);
  }
  const known = mirror && toldSince(mirror, config);
  if (known === null) return ok(`${told}; the mirror knows no change that a delta must show`);
  const since = await probe.tell(known.from);
  if (since > 0) return ok(`${told}; ${count(since)} since ${time(known.from)}, before the newest known change`);
  return note(`a delta from ${time(known.from)} is empty, but run ${known.run} found a change since`, hint);
}

async function checkLookup(probe: SourceProbe, { lookupPath }: SourceConfig): Promise<Result> {
  if (lookupPath === undefined) return ok('not used (CATCHWORD_LOOKUP_PATH is not set)');
  const found = await probe.lookUp();
  if (found === null) return ok('the catalog is empty: nothing to look up');
  const hint = `Correct CATCHWORD_LOOKUP_PATH (${lookupPath}), or remove it.`;
  if (!found.findsListed) return failed(`does not find ${found.vbid}, which is listed`, hint);
  return found.findsUnknown ? failed('finds a product that does not exist', hint) : ok('finds what exists');
}

/** Checks how the source behaves with about twenty requests, at the rate limit that the mirror, if any, shares. */
export async function examineSource(
  { clock, signal, stderr }: CommandContext,
  config: SourceConfig,
  mirror: Store | null,
): Promise<Finding[]> {
  const { pacer, close } = await openPace({ clock, stderr }, config, mirror);
  const client = createCatalogClient(config, clock, pacer);
  const probe = createSourceProbe({ client, pacer, clock, overlapMs: config.deltaOverlapMs, signal });
  try {
    const response = await examine('source', () => checkResponse(probe));
    if (response.level === 'failed') return [response];
    const first = await probe.first(config.perPage);
    return [
      response,
      await examine('items', () => checkItems(first)),
      await examine('page size', () => checkPageSize(probe, config, first)),
      await examine('order', () => checkOrder(probe, first)),
      await examine('deltas', () => checkDeltas(probe, config, mirror, clock.now(), first)),
      await examine('lookup', () => checkLookup(probe, config)),
    ];
  } finally {
    await client.close();
    close();
  }
}
