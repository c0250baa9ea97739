import type { Command } from 'commander';
import { requireSource } from '../config.ts';
import type { RunAction } from '../operator/actions.ts';
import { recordDone } from '../operator/record.ts';
import { approve, type Review, reject, undo } from '../operator/review.ts';
import { runJson } from '../report/run.ts';
import { lookUpHeld } from '../roles/look-up-held.ts';
import { holdLease } from '../store/hold-lease.ts';
import type { CommandContext } from './shared/context.ts';
import type { Result } from './shared/format.ts';
import { runCommand } from './shared/mirror.ts';
import { commandLog, toPerson } from './shared/notices.ts';
import { commandUser } from './shared/user.ts';

type Decide = (review: Review) => Promise<Result>;

const approveRun: Decide = async (review) => {
  const { run, outcome } = await approve(review);
  return { json: runJson(run), text: outcome };
};

const rejectRun: Decide = async (review) => {
  const { run, outcome } = await reject(review);
  return { json: runJson(run), text: outcome };
};

const undoRun: Decide = async (review) => {
  const { restored, outcome } = await undo(review);
  return { json: { run: review.runId, restored }, text: outcome };
};

function reviewCommand(context: CommandContext, action: RunAction, decide: Decide): Command {
  const { clock, signal } = context;
  return runCommand(context, action, 'write', (store, runId, config) => {
    const log = commandLog(context, 'error');
    const tell = toPerson(context);
    const decision = { who: commandUser(), action, target: String(runId), argument: null };
    return holdLease(store.keeperLease, clock, log, (leased) =>
      decide({
        store,
        leased,
        clock,
        runId,
        existing: async () => {
          // Without a path for lookups nothing is requested, and the settings of a source are not needed.
          if (config.lookupPath === undefined) return [];
          return await lookUpHeld({ config: requireSource(config), clock, log, tell }, store, runId, signal);
        },
        record: (recorder, outcome) => recordDone(recorder, decision, outcome, clock.now()),
      }),
    );
  });
}

export function undoCommand(context: CommandContext): Command {
  return reviewCommand(context, 'undo', undoRun).description('restore what a run removed, as new changes');
}

export function decideCommands(context: CommandContext): Command[] {
  return [reviewCommand(context, 'approve', approveRun), reviewCommand(context, 'reject', rejectRun)];
}
