import { printable } from '../base/printable.ts';
import type { RecordedChange } from '../catalog/event.ts';
import { createPreparedViews } from '../relay/store-contents.ts';
import { forecastView, type Judged } from '../relay/view-forecast.ts';
import { createHistory } from '../store/history/history.ts';
import type { SinkRow } from '../store/rows/sink-rows.ts';
import type { Store } from '../store/store.ts';
import type { View } from '../view/view.ts';
import { forecastText } from './held-sink.ts';
import { differingParts, excerpt } from './product-text.ts';
import { type Colours, plural, size } from './text.ts';

/** Products that are shown as they are, and as they would be. */
const SHOWN = 5;
/** Characters of a product that a person is shown; products between two reports of progress. */
const [MOST, STEP] = [400, 100];

/**
 * Compares what a store has, as the mirror knows it, with what a view would send it. Sends and writes nothing.
 * @param sink null: one that was not fed yet
 * @param view null: every product whole
 * @param judged gets how many products were judged, now and then
 */
export async function previewView(
  store: Store,
  name: string,
  sink: SinkRow | null,
  view: View | null,
  removalLimit: (products: number) => number,
  signal: AbortSignal,
  judged: (products: number) => void,
) {
  const fed = sink === null || (!sink.opened && sink.cursor === 0) ? null : sink;
  const samples: Judged[] = [];
  const bytes = { before: 0, after: 0 };
  const gets = ({ vbid, body }: RecordedChange) => (body === null || view === null ? body : view.of(vbid, body));
  let products = 0;
  const see = (one: Judged): void => {
    if (one.op !== null && samples.length < SHOWN) samples.push(one);
    bytes.before += Buffer.byteLength(one.before ?? '');
    bytes.after += Buffer.byteLength(one.after ?? '');
    if (++products % STEP === 0) judged(products);
  };
  const views = createPreparedViews(name);
  const asOf = store.changes.lastSeq();
  const forecast = await forecastView(store, createHistory(store), fed, views, gets, asOf, signal, see);
  const { count: failed, last: failure } = view?.failures() ?? { count: 0, last: null };
  const limit = removalLimit(forecast.has);
  return {
    sink: name,
    where: view?.where ?? null,
    fields: view?.fields ?? null,
    ...forecast,
    failed,
    failure,
    /** How large the store's data is, and would be. */
    bytes,
    removal_limit: limit,
    /** Whether the change would wait for an approval. */
    held: fed !== null && forecast.removed > limit,
    samples,
  };
}

/** A preview for a person. Of long products, the part that differs. */
export function previewLines(c: Colours, preview: Awaited<ReturnType<typeof previewView>>): string[] {
  const { sink, where, fields, failed, failure, bytes, held, removal_limit: limit, samples } = preview;
  const lines = [
    `products, where: ${where ?? 'every product'}`,
    `fields: ${fields ?? 'the whole product'}`,
    forecastText(preview),
    `data: ${size(bytes.before)} now, ${size(bytes.after)} then`,
    ...(failed === 0 ? [] : [`an expression fails on ${plural(failed, 'product')}, last on ${failure}`]),
    held
      ? `it would be held, because CATCHWORD_REMOVAL_LIMIT allows ${plural(limit, 'removal')}: npx catchword sink approve ${sink}`
      : 'it would not be held',
  ];
  const shown = samples.flatMap(({ vbid, op, before, after }) => {
    const parts = differingParts(before, after).map((text) => (text === null ? 'nothing' : excerpt(text, 0, MOST)));
    return [`${c.bold(printable(vbid))} ${op}`, `  now:  ${parts[0]}`, `  then: ${parts[1]}`];
  });
  return [...lines, ...shown, 'nothing was sent'];
}
