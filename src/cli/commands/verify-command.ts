import { EXIT, usageError } from '@catchword/base/errors';
import { printable } from '@catchword/base/printable';
import { selectionText, sourceIdentity } from '@catchword/catalog/source-identity';
import type { SourceConfig } from '@catchword/settings/config';
import { Command } from 'commander';
import { deltaFrom } from '../../proof/watermark.ts';
import { reasonText } from '../../report/reason-text.ts';
import { noteTexts } from '../../report/run-text.ts';
import { count, plural, time } from '../../report/text.ts';
import type { Store } from '../../store/store.ts';
import { type Verdict, verifyMirror } from '../../sync/compare-mirrors.ts';
import { requireSameSource, selectionChanges } from '../../sync/source-binding.ts';
import { withMirror } from '../roles/open-mirror.ts';
import type { KeeperOptions } from '../roles/pipeline.ts';
import { type ScratchMirror, withScratchMirror } from '../roles/scratch-mirror.ts';
import { loadSettings } from './shared/checked-settings.ts';
import type { CommandContext } from './shared/command-context.ts';
import { type JsonOption, print, type Result } from './shared/output-format.ts';
import { observePause } from './shared/person-notices.ts';
import { withProgress } from './shared/show-progress.ts';

/** How many rejected items of a reading are named. */
const REJECTED = 10;

type Options = JsonOption & Pick<KeeperOptions, 'now'>;

function verdictResult({ found, as }: Verdict): Result {
  const { kind, vbid, title } = found;
  const drift = as === 'drift';
  const fields = found.kind === 'differs' ? found.fields : undefined;
  const changed = fields === undefined ? '' : `  ${printable(fields.join(', '))}`;
  const label = `${drift ? 'drift' : 'DIFF '}  ${kind.replace('-', ' ').padEnd(10)}`;
  return { json: { kind, vbid, title, fields, drift }, text: `${label}  ${vbid}  ${printable(title ?? '')}${changed}` };
}

async function compare(
  context: CommandContext,
  options: Options,
  config: SourceConfig,
  { store, mirror, copiedAt, run }: ScratchMirror,
  readUpTo: number,
): Promise<void> {
  const full = await run({ kind: 'full' });
  const delta = await run({ kind: 'delta', from: deltaFrom(readUpTo, config.deltaOverlapMs) });
  const counts = { difference: 0, drift: 0, unproven: 0 };
  for (const verdict of verifyMirror(mirror, store, full, delta, config, copiedAt ?? 0)) {
    counts[verdict.as]++;
    if (verdict.as !== 'unproven') print(context, options, verdictResult(verdict));
  }
  const { difference: differences, drift: drifted, unproven } = counts;
  const { items, proof, evidence } = full;
  const reasons = full.reasons.map(reasonText);
  const rejected = [full, delta]
    .flatMap(({ id }) => store.runs.rejected(REJECTED, { run: id }))
    .map(({ reason }) => reason);
  const text = [
    `read ${plural(items, 'product')} from the source, proof ${[proof, ...reasons].join(': ')}`,
    ...noteTexts({ evidence }),
    ...delta.reasons.map((reason) => `the changes were not read whole: ${reasonText(reason)}`),
    ...rejected.map((reason) => `an item was rejected: ${printable(reason)}`),
    `${plural(differences, 'difference')}, ${count(drifted)} drifted since ${time(mirror.watermark() ?? 0)}`,
  ];
  if (drifted > 0)
    text.push('Drift does not count: the source has changed these products since, and the next run reads them.');
  if (unproven > 0) text.push(`${plural(unproven, 'product')} not seen, or different, which this reading cannot prove`);
  if (differences > 0) {
    context.setExitCode(EXIT.differences);
    text.push('Bring the mirror up to date with: npx catchword sync --full.');
  }
  const summary = { products: items, proof, reasons, differences, drifted, unproven, rejected };
  print(context, options, { json: { summary }, text });
}

async function verify(context: CommandContext, options: Options, config: SourceConfig, mirror: Store): Promise<void> {
  const readUpTo = mirror.readUpTo();
  if (readUpTo === null) {
    throw usageError('the mirror was never filled: there is nothing to verify', 'Fill it with: npx catchword sync.');
  }
  requireSameSource(mirror, sourceIdentity(config));
  observePause(context, mirror, options.now);
  const selection = selectionText(config);
  const changes = selectionChanges(mirror.source.noted()?.selection ?? selection, selection);
  if (changes !== '') context.stderr.write(`${changes} since the mirror was read: the selected products may differ\n`);
  // The scratch mirror stores withdrawn products, so that drift can be recognised.
  const own = { ...config, withdrawnAs: 'updated' } as const;
  const { signal } = context;
  await withProgress(context, own, (run) =>
    withScratchMirror({ ...run, now: options.now, mirror, copies: true, signal }, (scratch) =>
      compare(context, options, config, scratch, readUpTo),
    ),
  );
}

export function verifyCommand(context: CommandContext): Command {
  return new Command('verify')
    .option('--now', 'end a pause that the source asked for, also for a running daemon')
    .option('--json', 'print NDJSON: one line for each difference, then the summary')
    .action((options: Options) => {
      const config = loadSettings(context, 'source');
      return withMirror(config, true, (mirror) => verify(context, options, config, mirror));
    });
}
