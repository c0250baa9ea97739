import type { Command } from 'commander';
import { requireSource } from '../config.ts';
import { recordDone } from '../operator/record.ts';
import { REVIEWS } from '../operator/review.ts';
import { runJson } from '../report/run.ts';
import { lookUpHeld } from '../roles/look-up-held.ts';
import { holdLease } from '../store/hold-lease.ts';
import type { CommandContext } from './shared/context.ts';
import type { Result } from './shared/format.ts';
import { runCommand } from './shared/mirror.ts';
import { commandLog, toPerson } from './shared/notices.ts';
import { commandUser } from './shared/user.ts';

function reviewCommand(context: CommandContext, action: keyof typeof REVIEWS): Command {
  const { clock, signal } = context;
  return runCommand(context, action, 'write', (store, runId, config) => {
    const log = commandLog(context, 'error');
    const tell = toPerson(context);
    const decision = { who: commandUser(), action, target: String(runId), argument: null };
    return holdLease(store.keeperLease, clock, log, async (leased): Promise<Result> => {
      const { run, outcome, restored } = await REVIEWS[action]({
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
      });
      return { json: restored === undefined ? runJson(run) : { run: runId, restored }, text: outcome };
    });
  });
}

export function undoCommand(context: CommandContext): Command {
  return reviewCommand(context, 'undo').description('restore what a run removed, as new changes');
}

export function decideCommands(context: CommandContext): Command[] {
  return [reviewCommand(context, 'approve'), reviewCommand(context, 'reject')];
}
