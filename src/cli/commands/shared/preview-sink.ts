import { limitOf } from '@catchword/catalog/product-limit';
import { type Config, settingsError } from '@catchword/settings/config';
import { requireSink } from '../../../operate/decisions/sink-actions.ts';
import { whyHeld } from '../../../relay/settle-view.ts';
import { type Comparison, compareView, comparisonLines, sampleLines } from '../../../report/sink-preview.ts';
import type { Colours } from '../../../report/text.ts';
import { type Moment, seqOf } from '../../../store/history/moment.ts';
import { legOf } from '../../../store/rows/sink-legs.ts';
import type { Store } from '../../../store/store.ts';
import { type GivenView, viewOrNull, viewText } from '../../../view/view.ts';
import type { CommandContext } from './command-context.ts';
import { colours, type Result } from './output-format.ts';
import { progressBar } from './show-progress.ts';

/**
 * The view of the settings, or of the store if the settings do not name the sink.
 * @param given replaces a part of it; an empty text: every product, or the whole product
 * @returns it, and the sink; null if the mirror does not know it yet
 * @throws CatchwordError NOT_FOUND if neither knows the sink; CONFIG_INVALID, USAGE if an expression is not valid
 */
export function sinkView(store: Store, { sinks }: Config, name: string, given: GivenView = {}) {
  const setting = sinks.find((one) => one.name === name);
  if (setting?.problems !== undefined) throw settingsError(setting.problems);
  const row = setting === undefined ? requireSink(store, name) : (store.sinks.get(name) ?? null);
  const had = legOf(row ?? { legs: [] });
  const now = setting ?? { where: had.where ?? '', fields: had.fields ?? '' };
  const text = viewText(given.where ?? now.where, given.fields ?? now.fields);
  const where = given.where === undefined ? `${setting?.env}_WHERE` : '--where';
  const fields = given.fields === undefined ? `${setting?.env}_FIELDS` : '--fields';
  const isGiven = given.where !== undefined || given.fields !== undefined;
  return { row, view: viewOrNull(text, { where, fields }, isGiven ? 'USAGE' : 'CONFIG_INVALID') };
}

function previewLines(c: Colours, found: Comparison, why: string | null): string[] {
  const { samples } = found;
  const held =
    why === null ? 'it would not be held' : `it would be held, because ${why}; then see: npx catchword sink list`;
  const shown = samples.flatMap((sample) => {
    const { title, now, next } = sampleLines(sample);
    return [c.bold(title), `  now:  ${now}`, `  then: ${next}`];
  });
  return [...comparisonLines(found), held, ...shown, 'nothing was sent'];
}

export interface PreviewOptions extends GivenView {
  /** The products as of then; default: now. */
  readonly at?: Moment;
}

/** Compares what the store of a sink has with what a view would send it, and shows how far it is. */
export async function previewSink(
  context: CommandContext,
  store: Store,
  config: Config,
  name: string,
  { at, ...given }: PreviewOptions,
): Promise<Result> {
  const asOf = at && seqOf(store, '--at', at);
  const { row, view } = sinkView(store, config, name, given);
  const bar = progressBar(context.stderr, 'judging {bar} {value}/{total} products');
  bar?.start(Math.max(1, store.products.living()), 0);
  const see = (): boolean => {
    bar?.increment();
    return true;
  };
  try {
    const found = await compareView(store, name, row, view, context.signal, see, asOf);
    const removalLimit = (has: number): number => limitOf(config.removalLimit, has);
    const why = found.is_changed ? whyHeld({ removalLimit }, found) : null;
    const then = asOf === undefined ? [] : [`as of change ${asOf}`];
    const text = [...then, ...previewLines(colours(context), found, why)];
    return { json: { ...found, removal_limit: removalLimit(found.has), held: why !== null }, text };
  } finally {
    bar?.stop();
  }
}
