import { createCatalogClient } from '../../client/catalog-client.ts';
import type { SourceConfig } from '../../config.ts';
import { duration, plural, SKEW_MS } from '../../report/text.ts';
import type { Store } from '../../store/store.ts';
import { createSourceProbe, type SourceProbe } from '../../sync/probe-source.ts';
import { mirrorPacer } from '../../sync/shared-pace.ts';
import type { CommandContext } from '../shared/context.ts';
import { toPerson } from '../shared/notices.ts';
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

async function checkPageSize(probe: SourceProbe, { perPage }: SourceConfig): Promise<Result> {
  const refusal = await probe.refuse(perPage);
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

async function checkOrder(probe: SourceProbe): Promise<Result> {
  const order = await probe.repeat();
  if (order === 'same') return ok('two reads of a page are the same');
  if (order === 'same order') return ok('stable while the catalog changes');
  const hint = 'No run can be proven complete: products are removed by confirmation only.';
  return note('two reads of a page have different orders', hint);
}

async function checkLookup(probe: SourceProbe, { lookupPath }: SourceConfig): Promise<Result> {
  if (lookupPath === undefined) return ok('not used (CATCHWORD_LOOKUP_PATH is not set)');
  const found = await probe.lookUp();
  if (found === null) return ok('the catalog is empty: nothing to look up');
  const hint = `Correct CATCHWORD_LOOKUP_PATH (${lookupPath}), or remove it.`;
  if (!found.findsListed) return failed(`does not find ${found.vbid}, which is listed`, hint);
  return found.findsUnknown ? failed('finds a product that does not exist', hint) : ok('finds what exists');
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
  const probe = createSourceProbe({ client, pacer, clock, overlapMs: config.deltaOverlapMs, signal });
  try {
    const response = await examine('source', () => checkResponse(probe));
    if (response.level === 'failed') return [response];
    return [
      response,
      await examine('page size', () => checkPageSize(probe, config)),
      await examine('order', () => checkOrder(probe)),
      await examine('lookup', () => checkLookup(probe, config)),
    ];
  } finally {
    await client.close();
  }
}
