import { printable } from '@catchword/base/printable';
import { createPreparedViews } from '../relay/store-contents.ts';
import { forecastView, type Judged } from '../relay/view-forecast.ts';
import { requireKept } from '../store/history/history.ts';
import { isSameView, legOf } from '../store/rows/sink-legs.ts';
import { isFed, type SinkRow } from '../store/rows/sink-rows.ts';
import type { Reader } from '../store/schema/reader.ts';
import type { View } from '../view/view.ts';
import { differingParts, excerpt } from './product-text.ts';
import { forecastText } from './sink-report.ts';
import { plural, size } from './text.ts';

/** Products that are shown as they are, and as they would be; characters of each for a person. */
const [SHOWN, MOST] = [5, 400];

export type Comparison = Awaited<ReturnType<typeof compareView>>;

/**
 * Compares what the store of a sink has with what a view would send it. Sends and writes nothing.
 * @param row null: a sink that the mirror does not know yet
 * @param goOn asked at each product: false ends it there
 * @param asOf the products as of this change; of a store that is ahead, what it had then
 * @throws CatchwordError NOT_FOUND if the log no longer reaches back so far
 * @returns `bytes`: how large the store's data is, and would be; `is_changed`: whether the sink has another view now
 */
export async function compareView(
  store: Reader,
  name: string,
  row: SinkRow | null,
  view: View | null,
  signal: AbortSignal,
  goOn: () => boolean,
  asOf = store.changes.lastSeq(),
) {
  const fed = row === null || !isFed(row) ? null : row;
  const samples: Judged[] = [];
  const bytes = { before: 0, after: 0 };
  const see = (one: Judged): boolean => {
    if (one.op !== null && samples.length < SHOWN) samples.push(one);
    bytes.before += Buffer.byteLength(one.before ?? '');
    bytes.after += Buffer.byteLength(one.after ?? '');
    return goOn();
  };
  requireKept(store, asOf);
  const views = createPreparedViews(name);
  const counts = await forecastView(store, fed, views, view, asOf, signal, see);
  // It may have been pruned meanwhile.
  requireKept(store, asOf);
  const { where = null, fields = null } = view ?? {};
  const isChanged = !isSameView(legOf(row ?? { legs: [] }), { where, fields });
  const failure = view?.failures().last ?? null;
  return { sink: name, as_of: asOf, where, fields, ...counts, failure, bytes, is_changed: isChanged, samples };
}

export function comparisonLines(found: Comparison): string[] {
  const { where, fields, failed, failure, bytes } = found;
  return [
    `products, where: ${where ?? 'every product'}`,
    `fields: ${fields ?? 'the whole product'}`,
    forecastText(found),
    `data: ${size(bytes.before)} now, ${size(bytes.after)} then`,
    ...(failed === 0 ? [] : [`an expression fails on ${plural(failed, 'product')}, last on ${failure}`]),
  ];
}

/** Of a long product, the part that differs. */
export function sampleLines({ vbid, op, before, after }: Judged) {
  const [now, next] = differingParts(before, after).map((text) => (text === null ? 'nothing' : excerpt(text, 0, MOST)));
  return { title: `${printable(vbid)} ${op}`, now: now ?? 'nothing', next: next ?? 'nothing' };
}
