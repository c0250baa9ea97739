import { Command } from 'commander';
import type { Run } from '../catalog/run.ts';
import { runJson } from '../report/run.ts';
import { cancelRun, requireRun } from '../sync/finish-run.ts';
import { heldJson, heldLines, undoCommand } from './review.ts';
import type { CommandContext } from './shared/context.ts';
import { duration, moment, plural, printJson, printLine, table, wholeNumber } from './shared/format.ts';
import { seamPicture } from './shared/seam-picture.ts';
import { readMirror, withMirror } from './status.ts';
import { runSummary } from './sync.ts';

function row(run: Run, nowMs: number): (string | number)[] {
  const took = duration((run.finishedAt ?? nowMs) - run.startedAt);
  const counts = [run.pages, run.items, run.created, run.updated, run.removed, run.restored, run.rejected];
  const state = run.settlesAt === null ? run.state : 'settling';
  return [run.id, run.kind, state, run.proof ?? '–', moment(run.startedAt), took, ...counts];
}

const HEAD = ['run', 'kind', 'state', 'proof', 'started (UTC)', 'took', 'pages', 'items'].concat([
  'created',
  'updated',
  'removed',
  'restored',
  'rejected',
]);

function runsCommand(context: CommandContext): Command {
  return new Command('runs')
    .description('list the newest runs; `runs undo <id>` restores what one removed')
    .enablePositionalOptions()
    .addCommand(undoCommand(context))
    .option('--limit <n>', 'how many', wholeNumber('--limit', 1), 20)
    .option('--json', 'print one JSON document')
    .action((options: { limit: number; json?: boolean }) =>
      readMirror(context, (store) => {
        const runs = store.runs.list(options.limit);
        if (options.json) printJson(context, runs.map(runJson));
        else if (runs.length === 0) printLine(context, 'no run yet; start one with: npx catchword sync');
        else
          printLine(
            context,
            table(
              HEAD,
              runs.map((run) => row(run, context.clock.now())),
            ),
          );
      }),
    );
}

function runCommand(context: CommandContext): Command {
  return new Command('run')
    .description('show one run: what it read, changed, proved and rejected')
    .argument('<id>', 'number of the run', wholeNumber('<id>', 1))
    .option('--json', 'print one JSON document')
    .action((id: number, options: { json?: boolean }) =>
      readMirror(context, (store) => {
        const run = requireRun(store, id);
        const rejected = store.runs.rejected(id, 100);
        if (options.json) {
          printJson(context, { ...runJson(run), held_removals: heldJson(store, id), rejected_items: rejected });
          return;
        }
        printLine(context, runSummary(context, run));
        if (run.evidence !== null) printLine(context, seamPicture(context, run.evidence));
        if (run.state === 'held') printLine(context, `\n${heldLines(store, id)}`);
        if (rejected.length === 0) return;
        printLine(context);
        printLine(
          context,
          table(
            ['page', 'item', 'reason', 'body'],
            rejected.map((r) => [r.page, r.position, r.reason, r.body.slice(0, 60)]),
          ),
        );
        if (rejected.length < run.rejected) printLine(context, `… the rest is in the SQL view rejected_items`);
      }),
    );
}

function cancelCommand(context: CommandContext): Command {
  return new Command('cancel')
    .description('cancel a run (applied pages are kept)')
    .argument('<id>', 'number of the run', wholeNumber('<id>', 1))
    .option('--json', 'print one JSON document')
    .action((id: number, options: { json?: boolean }) =>
      withMirror(context, (store) => {
        const run = cancelRun(store, id, context.clock.now());
        if (options.json) printJson(context, runJson(run));
        else printLine(context, `run ${id} is cancelled; what its ${plural(run.pages, 'page')} changed is kept`);
      }),
    );
}

export function runCommands(context: CommandContext): Command[] {
  return [runsCommand(context), runCommand(context), cancelCommand(context)];
}
