import { limitOf } from '../../../catalog/product-limit.ts';
import { requireSink } from '../../../relay/sink-operations.ts';
import { viewAt, WHOLE } from '../../../relay/store-contents.ts';
import { previewLines, previewView, sampleTexts } from '../../../report/sink-preview.ts';
import type { Config } from '../../../settings/config.ts';
import type { SinkRow } from '../../../store/rows/sink-rows.ts';
import type { Store } from '../../../store/store.ts';
import { compileView, isWhole, type View, viewText } from '../../../view/view.ts';
import type { CommandContext } from './command-context.ts';
import { colours, type Result } from './output-format.ts';
import { progressBar } from './show-progress.ts';

/** What replaces a setting of the sink; an empty text: every product, or the whole product. */
export interface ViewOptions {
  readonly where?: string;
  readonly fields?: string;
}

/**
 * The view of the settings, or of the store if the settings do not name the sink, with what replaces a part of it.
 * @param row null: a sink that is only configured
 * @throws CatchwordError NOT_FOUND if neither knows the sink; CONFIG_INVALID, USAGE if an expression is not valid
 */
export function sinkView(
  store: Store,
  { sinks }: Config,
  name: string,
  options: ViewOptions = {},
): { readonly row: SinkRow | null; readonly view: View | null } {
  const setting = sinks.find((one) => one.name === name);
  const row = setting === undefined ? requireSink(store, name) : (store.sinks.get(name) ?? null);
  const had = row === null ? WHOLE : (viewAt(store.sinks.views(row.id), row.generation) ?? WHOLE);
  const now = setting === undefined ? had : viewText(setting.where, setting.fields);
  const text = viewText(options.where ?? now.where ?? '', options.fields ?? now.fields ?? '');
  if (isWhole(text)) return { row, view: null };
  const env = setting?.env ?? `the view of sink ${name}`;
  const where = options.where === undefined ? `${env}_WHERE` : '--where';
  const fields = options.fields === undefined ? `${env}_FIELDS` : '--fields';
  const isGiven = options.where !== undefined || options.fields !== undefined;
  return { row, view: compileView(text, { where, fields }, isGiven ? 'USAGE' : 'CONFIG_INVALID') };
}

/** Compares what the store of a sink has with what a view would send it. Sends and writes nothing. */
export async function previewSink(
  context: CommandContext,
  store: Store,
  config: Config,
  name: string,
  options: ViewOptions,
): Promise<Result> {
  const { row, view } = sinkView(store, config, name, options);
  const bar = progressBar(context.stderr, 'judging {bar} {value}/{total} products');
  bar?.start(Math.max(1, store.products.living()), 0);
  try {
    const preview = await previewView(store, name, row, {
      view,
      removalLimit: (products) => limitOf(config.removalLimit, products),
      signal: context.signal,
      progress: (judged) => {
        bar?.update(judged);
        return false;
      },
    });
    const c = colours(context);
    const samples = sampleTexts(preview).flatMap(({ vbid, op, before, after }) => [
      `${c.bold(vbid)} ${op}`,
      `  now:  ${before}`,
      `  then: ${after}`,
    ]);
    return { json: preview, text: [...previewLines(preview), ...samples, 'nothing was sent'] };
  } finally {
    bar?.stop();
  }
}
