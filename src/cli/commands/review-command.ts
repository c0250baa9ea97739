import type { Command } from 'commander';
import { reviewNow } from '../../operate/decisions/carry-out-review.ts';
import type { REVIEWS } from '../../operate/decisions/held-run-review.ts';
import { runJson } from '../../report/run-report.ts';
import { requireSource } from '../../settings/config.ts';
import { requireRun } from '../../sync/finish-run.ts';
import { lookUpHeld } from '../roles/look-up-held.ts';
import type { CommandContext } from './shared/command-context.ts';
import { commandUser } from './shared/command-user.ts';
import type { Result } from './shared/output-format.ts';
import { commandLog, toPerson } from './shared/person-notices.ts';
import { runCommand } from './shared/with-mirror.ts';

/** Makes the command that reviews the removals of a run: `approve`, `reject` or `undo`. */
export function reviewCommand(context: CommandContext, action: keyof typeof REVIEWS): Command {
  const { clock, signal } = context;
  return runCommand(context, action, 'write', async (store, runId, config): Promise<Result> => {
    const log = commandLog(context, 'error');
    const tell = toPerson(context);
    const existing = async (): Promise<readonly number[]> => {
      // Without a path for lookups nothing is requested, and the settings of a source are not needed.
      if (config.lookupPath === undefined) return [];
      return await lookUpHeld({ config: requireSource(config), clock, log, tell }, store, runId, signal);
    };
    const before = store.runs.get(runId)?.restored ?? 0;
    const decision = { who: commandUser(), action, target: String(runId), argument: null };
    const { outcome } = await reviewNow({ store, clock, log, existing, tell }, decision, signal);
    const run = requireRun(store, runId);
    const json = action === 'undo' ? { run: runId, restored: run.restored - before } : runJson(run);
    return { json, text: outcome ?? '' };
  });
}

export function decideCommands(context: CommandContext): Command[] {
  return [reviewCommand(context, 'approve'), reviewCommand(context, 'reject')];
}
