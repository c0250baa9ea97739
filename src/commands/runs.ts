import { Command } from 'commander';
import type { Run } from '../catalog/run.ts';
import { heldRemovalsJson, runJson } from '../report/run.ts';
import { heldText, runSummary } from '../report/run-text.ts';
import { seamPicture } from '../report/seam-picture.ts';
import { duration, moment, plural, table } from '../report/text.ts';
import type { Store } from '../store/store.ts';
import { cancelRun, requireRun } from '../sync/finish-run.ts';
import { undoCommand } from './review.ts';
import type { CommandContext } from './shared/context.ts';
import { colours, print, wholeNumber } from './shared/format.ts';
import { readMirror, writeMirror } from './shared/mirror.ts';

/** How many rejected items are listed. */
const REJECTED = 100;

const COUNTS = ['pages', 'items', 'created', 'updated', 'removed', 'restored', 'rejected'] as const;
const HEAD = ['run', 'kind', 'state', 'proof', 'started (UTC)', 'took', ...COUNTS];

interface Options {
  readonly json?: boolean;
}

function row(run: Run, nowMs: number): (string | number)[] {
  const state = run.settlesAt === null ? run.state : 'settling';
  const took = duration((run.finishedAt ?? nowMs) - run.startedAt);
  const counts = COUNTS.map((name) => run[name]);
  return [run.id, run.kind, state, run.proof ?? '–', moment(run.startedAt), took, ...counts];
}

function printRuns(context: CommandContext, options: Options, runs: readonly Run[]): void {
  const rows = runs.map((run) => row(run, context.clock.now()));
  const none = 'no run yet; start one with: npx catchword sync';
  print(context, options, runs.map(runJson), rows.length === 0 ? none : table(HEAD, rows));
}

function printRun(context: CommandContext, options: Options, store: Store, id: number): void {
  const run = requireRun(store, id);
  const rejected = store.runs.rejected(id, REJECTED);
  const rows = rejected.map(({ page, position, reason, body }) => [page, position, reason, body.slice(0, 60)]);
  const lines = [runSummary(colours(context, context.stdout), run, context.clock.now())];
  if (run.evidence !== null) lines.push(seamPicture(colours(context, context.stdout), run.evidence));
  if (run.state === 'held') lines.push('', heldText(store, id));
  if (rows.length > 0) lines.push('', table(['page', 'item', 'reason', 'body'], rows));
  if (rows.length < run.rejected) lines.push('… see the SQL view rejected_items for the rest');
  const held_removals = heldRemovalsJson(store, id);
  print(context, options, { ...runJson(run), held_removals, rejected_items: rejected }, lines);
}

function cancel(context: CommandContext, options: Options, store: Store, id: number): void {
  const run = cancelRun(store, id, context.clock.now());
  print(context, options, runJson(run), `run ${id} is cancelled (${plural(run.pages, 'applied page')} kept)`);
}

export function runCommands(context: CommandContext): Command[] {
  const id = wholeNumber('<run>', 1);
  return [
    new Command('runs')
      .enablePositionalOptions()
      .addCommand(undoCommand(context))
      .option('--limit <n>', 'list at most this many', wholeNumber('--limit', 1), 20)
      .option('--json', 'print one JSON document')
      .action((options: Options & { limit: number }) =>
        readMirror(context, ({ runs }) => printRuns(context, options, runs.list(options.limit))),
      ),
    new Command('run')
      .argument('<run>', 'number of the run', id)
      .option('--json', 'print one JSON document')
      .action((run: number, options: Options) =>
        readMirror(context, (store) => printRun(context, options, store, run)),
      ),
    new Command('cancel')
      .argument('<run>', 'number of the run', id)
      .option('--json', 'print one JSON document')
      .action((run: number, options: Options) => writeMirror(context, (store) => cancel(context, options, store, run))),
  ];
}
