import { printable } from '../base/printable.ts';
import { createPreparedViews } from '../relay/store-contents.ts';
import { forecastView, type Judged } from '../relay/view-forecast.ts';
import { createHistory } from '../store/history/history.ts';
import type { SinkRow } from '../store/rows/sink-rows.ts';
import type { Store } from '../store/store.ts';
import type { View, ViewText } from '../view/view.ts';
import { forecastText } from './held-sink.ts';
import { differingParts, excerpt } from './product-text.ts';
import { count, plural, size } from './text.ts';

/** Products that are shown as they are, and as they would be. */
const SHOWN = 5;
/** Characters of a product that a person is shown, and products between two looks at the progress. */
const [MOST, STEP] = [400, 100];

export interface PreviewOptions {
  /** What the store would get; null: every product whole. */
  readonly view: View | null;
  /** How many products a changed view may remove from a store that has so many, without a decision. */
  readonly removalLimit: (products: number) => number;
  readonly signal: AbortSignal;
  /** Gets how many products were judged, now and then; it returns true to end the preview there. */
  readonly progress?: (judged: number) => boolean;
}

export type Preview = Awaited<ReturnType<typeof previewView>>;

/**
 * Compares what a store has, as the mirror knows it, with what a view would send it. Sends and writes nothing.
 * @param sink null: one that was not fed yet
 */
export async function previewView(store: Store, name: string, sink: SinkRow | null, options: PreviewOptions) {
  const { view, removalLimit, signal, progress = () => false } = options;
  const text: ViewText = { where: view?.where ?? null, fields: view?.fields ?? null };
  const fed = sink === null || (!sink.opened && sink.cursor === 0) ? null : sink;
  const samples: Judged[] = [];
  const bytes = { before: 0, after: 0 };
  let judged = 0;
  let isEnded = false;
  const forecast = await forecastView(
    store,
    createHistory(store),
    fed,
    createPreparedViews(name),
    ({ vbid, body }) => {
      judged++;
      return body === null || view === null ? body : view.of(vbid, body);
    },
    store.changes.lastSeq(),
    signal,
    (one) => {
      if (one.op !== null && samples.length < SHOWN) samples.push(one);
      bytes.before += Buffer.byteLength(one.before ?? '');
      bytes.after += Buffer.byteLength(one.after ?? '');
      isEnded = judged % STEP === 0 && progress(judged);
      return isEnded;
    },
  );
  const { count: failed, last: failure } = view?.failures() ?? { count: 0, last: null };
  const limit = removalLimit(forecast.has);
  return {
    sink: name,
    ...text,
    judged,
    of: isEnded ? store.products.living() : judged,
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

/** What a preview says, a line for each fact. */
export function previewLines(preview: Preview): string[] {
  const { sink, where, fields, judged, of, failed, failure, bytes, held, removal_limit: limit } = preview;
  return [
    `products, where: ${printable(where ?? 'every product')}`,
    `fields: ${printable(fields ?? 'the whole product')}`,
    ...(judged === of ? [] : [`judged ${count(judged)} of ${plural(of, 'product')}: the figures are of these only`]),
    forecastText(preview),
    `data: ${size(bytes.before)} now, ${size(bytes.after)} then`,
    ...(failed === 0
      ? []
      : [`an expression fails on ${plural(failed, 'product')}, last on ${printable(failure ?? '')}`]),
    held
      ? `it would be held, because CATCHWORD_REMOVAL_LIMIT allows ${plural(limit, 'removal')}: npx catchword sink approve ${sink}`
      : 'it would not be held',
  ];
}

/** Products as they are and would be, for a person: of long texts, the part that differs. */
export function sampleTexts({ samples }: Pick<Preview, 'samples'>) {
  return samples.map(({ vbid, op, ...texts }) => {
    const parts = differingParts(texts.before, texts.after).map((text) =>
      text === null ? 'nothing' : printable(excerpt(text, 0, MOST)),
    );
    return { vbid, op, before: parts[0] ?? '', after: parts[1] ?? '' };
  });
}
