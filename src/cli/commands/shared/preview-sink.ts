import { printable } from '../../../base/printable.ts';
import type { RecordedChange } from '../../../catalog/event.ts';
import { limitOf } from '../../../catalog/product-limit.ts';
import { requireSink } from '../../../relay/sink-operations.ts';
import { createPreparedViews, viewAt, WHOLE } from '../../../relay/store-contents.ts';
import { forecastView, type Judged } from '../../../relay/view-forecast.ts';
import { forecastText } from '../../../report/held-sink.ts';
import { differingParts, excerpt } from '../../../report/product-text.ts';
import { type Colours, plural, size } from '../../../report/text.ts';
import type { Config } from '../../../settings/config.ts';
import { createHistory } from '../../../store/history/history.ts';
import type { Store } from '../../../store/store.ts';
import { compileView, type GivenView, isWhole, viewText } from '../../../view/view.ts';
import type { CommandContext } from './command-context.ts';
import { colours, type Result } from './output-format.ts';
import { progressBar } from './show-progress.ts';

/** Products that are shown as they are, and as they would be; characters of each for a person. */
const [SHOWN, MOST] = [5, 400];

/**
 * The view of the settings, or of the store if the settings do not name the sink.
 * @param given replaces a part of it; an empty text: every product, or the whole product
 * @returns it, and the sink; null if the mirror does not know it yet
 * @throws CatchwordError NOT_FOUND if neither knows the sink; CONFIG_INVALID, USAGE if an expression is not valid
 */
export function sinkView(store: Store, { sinks }: Config, name: string, given: GivenView = {}) {
  const setting = sinks.find((one) => one.name === name);
  const row = setting === undefined ? requireSink(store, name) : (store.sinks.get(name) ?? null);
  const had = row === null ? undefined : viewAt(store.sinks.views(row.id), row.generation);
  const now = setting ?? { where: had?.where ?? '', fields: had?.fields ?? '' };
  const text = viewText(given.where ?? now.where, given.fields ?? now.fields);
  if (isWhole(text)) return { row, view: null };
  const where = given.where === undefined ? `${setting?.env}_WHERE` : '--where';
  const fields = given.fields === undefined ? `${setting?.env}_FIELDS` : '--fields';
  const isGiven = given.where !== undefined || given.fields !== undefined;
  return { row, view: compileView(text, { where, fields }, isGiven ? 'USAGE' : 'CONFIG_INVALID') };
}

/** Compares, as of now. `bytes`: how large the store's data is, and would be; `held`: whether it would need an approval. */
async function preview(context: CommandContext, store: Store, config: Config, name: string, given: GivenView) {
  const { row, view } = sinkView(store, config, name, given);
  const fed = row === null || (!row.opened && row.cursor === 0) ? null : row;
  const samples: Judged[] = [];
  const bytes = { before: 0, after: 0 };
  const bar = progressBar(context.stderr, 'judging {bar} {value}/{total} products');
  const gets = ({ vbid, body }: RecordedChange) => (body === null || view === null ? body : view.of(vbid, body));
  const see = (one: Judged): void => {
    if (one.op !== null && samples.length < SHOWN) samples.push(one);
    bytes.before += Buffer.byteLength(one.before ?? '');
    bytes.after += Buffer.byteLength(one.after ?? '');
    bar?.increment();
  };
  const asOf = store.changes.lastSeq();
  const views = createPreparedViews(name);
  bar?.start(Math.max(1, store.products.living()), 0);
  try {
    const counts = await forecastView(store, createHistory(store), fed, views, gets, asOf, context.signal, see);
    const { count: failed, last: failure } = view?.failures() ?? { count: 0, last: null };
    const limit = limitOf(config.removalLimit, counts.has);
    const { where = null, fields = null } = view ?? {};
    const had = fed && (viewAt(store.sinks.views(fed.id), fed.generation) ?? WHOLE);
    const held = had !== null && (had.where !== where || had.fields !== fields) && counts.removed > limit;
    return { sink: name, where, fields, ...counts, failed, failure, bytes, removal_limit: limit, held, samples };
  } finally {
    bar?.stop();
  }
}

/** Of long products, the part that differs. */
function previewLines(c: Colours, found: Awaited<ReturnType<typeof preview>>): string[] {
  const { sink, where, fields, failed, failure, bytes, held, removal_limit: limit, samples } = found;
  const lines = [
    `products, where: ${where ?? 'every product'}`,
    `fields: ${fields ?? 'the whole product'}`,
    forecastText(found),
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

/** Compares what the store of a sink has with what a view would send it. Sends and writes nothing. */
export async function previewSink(
  context: CommandContext,
  ...asked: [Store, Config, string, GivenView]
): Promise<Result> {
  const found = await preview(context, ...asked);
  return { json: found, text: previewLines(colours(context), found) };
}
