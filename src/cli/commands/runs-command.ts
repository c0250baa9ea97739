import type { Run } from '@catchword/catalog/run-types';
import { Command } from 'commander';
import { reviewNow } from '../../operate/decisions/carry-out-review.ts';
import type { REVIEWS, ReviewOptions } from '../../operate/decisions/held-run-review.ts';
import { carryOutNow } from '../../operate/decisions/submit-decision.ts';
import { adviceFor } from '../../report/reason-text.ts';
import { heldRemovalsJson } from '../../report/run-report.ts';
import { heldText } from '../../report/run-text.ts';
import { seamPicture } from '../../report/seam-picture.ts';
import { count } from '../../report/text.ts';
import { runSummary } from '../../shown/run-summary.ts';
import { REJECTED } from '../../shown/shown-rejected.ts';
import { jsonOf, shownLines } from '../../shown/shown-row.ts';
import { runJson, runRows } from '../../shown/shown-run.ts';
import type { Store } from '../../store/store.ts';
import { requireRun } from '../../sync/finish-run.ts';
import { lookUpHeld } from '../roles/pipeline.ts';
import type { CommandContext } from './shared/command-context.ts';
import { colours, type Result, wholeNumber } from './shared/output-format.ts';
import { commandLog, commandUser, toPerson } from './shared/person-notices.ts';
import { mirrorCommand } from './shared/with-mirror.ts';

/** How many rejected items are listed. */
const LISTED = 100;

function listRuns(context: CommandContext, runs: readonly Run[]): Result {
  const none = 'no run yet; start one with: npx catchword sync';
  const lines = shownLines(colours(context), runRows(context.clock.now()), runs, ({ id }) => `run ${id}`);
  return { json: runs.map(runJson), text: runs.length === 0 ? none : lines };
}

function showRun(context: CommandContext, store: Store, id: number): Result {
  const c = colours(context);
  const run = requireRun(store, id);
  const rejected = store.runs.rejected(LISTED, { run: id, after: 0 });
  const text = [runSummary(c, run, context.clock.now())];
  const advice = run.reasons.filter(({ code }) => code !== 'held').map(adviceFor);
  text.push(...[...new Set(advice)].map((one) => `  help     ${one}`));
  if (run.evidence !== null) text.push(seamPicture(c, run.evidence));
  if (run.state === 'held') text.push('', heldText(store, run));
  if (rejected.length > 0) text.push('', ...shownLines(c, REJECTED, rejected, () => ''));
  const unused = run.rejected + store.runs.inPart(id).items;
  if (rejected.length < unused)
    text.push(`… of ${count(unused)}: see the SQL view rejected_items, which has up to 1,000 of a run`);
  const items = rejected.map((item) => jsonOf(REJECTED, item));
  return { json: { ...runJson(run), held_removals: heldRemovalsJson(store, id), rejected_items: items }, text };
}

function cancelRun({ clock }: CommandContext, store: Store, id: number): Result {
  const decision = { who: commandUser(), action: 'cancel', target: String(id), argument: null } as const;
  const text = carryOutNow(store, decision, clock.now());
  return { json: runJson(requireRun(store, id)), text };
}

/** A command for one run. */
function runCommand(name: string): Command {
  return new Command(name).argument('<run>', 'number of the run', wholeNumber('<run>', 1));
}

function reviewCommand(context: CommandContext, action: keyof typeof REVIEWS): Command {
  const { clock, signal } = context;
  return mirrorCommand(context, 'write', runCommand(action), async (store, config, runId: number): Promise<Result> => {
    const log = commandLog(context, 'error');
    const tell = toPerson(context);
    const lookUp: ReviewOptions['lookUp'] = (id, most, stopping) =>
      lookUpHeld({ config, clock, log, tell }, store, id, most, stopping);
    const before = store.runs.get(runId)?.restored ?? 0;
    const decision = { who: commandUser(), action, target: String(runId), argument: null };
    const { outcome } = await reviewNow({ store, clock, log, lookUp, tell }, decision, signal);
    const run = requireRun(store, runId);
    if (action === 'check') return { json: { run: runId, outcome }, text: outcome ?? '' };
    const json = action === 'undo' ? { run: runId, restored: run.restored - before } : runJson(run);
    return { json, text: outcome ?? '' };
  });
}

/** The commands that show runs, and decide about them. */
export function runCommands(context: CommandContext): Command[] {
  const list = new Command('runs')
    .enablePositionalOptions()
    .addCommand(reviewCommand(context, 'check').description('ask the service about some products that a run holds'))
    .addCommand(reviewCommand(context, 'undo').description('restore what a run removed, as new changes'))
    .option('--limit <n>', 'list at most this many', wholeNumber('--limit', 1), 20);
  return [
    mirrorCommand(context, 'look', list, ({ runs }, _config, { limit }: { limit: number }) =>
      listRuns(context, runs.list(limit)),
    ),
    mirrorCommand(context, 'look', runCommand('run'), (store, _config, id: number) => showRun(context, store, id)),
    mirrorCommand(context, 'write', runCommand('cancel'), (store, _config, id: number) =>
      cancelRun(context, store, id),
    ),
    reviewCommand(context, 'approve'),
    reviewCommand(context, 'reject'),
  ];
}
