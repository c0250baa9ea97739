import type { Command } from 'commander';
import { type LookUp, reviewNow } from '../../operate/decisions/carry-out-review.ts';
import type { REVIEWS } from '../../operate/decisions/held-run-review.ts';
import { runJson } from '../../report/run-report.ts';
import { requireRun } from '../../sync/finish-run.ts';
import { lookUpHeld } from '../roles/look-up-held.ts';
import type { CommandContext } from './shared/command-context.ts';
import { commandUser } from './shared/command-user.ts';
import type { Result } from './shared/output-format.ts';
import { commandLog, toPerson } from './shared/person-notices.ts';
import { runCommand } from './shared/with-mirror.ts';

/** Makes the command that reviews the removals of a run: `approve`, `reject`, `undo` or `check`. */
export function reviewCommand(context: CommandContext, action: keyof typeof REVIEWS): Command {
  const { clock, signal } = context;
  return runCommand(context, action, 'write', async (store, runId, config): Promise<Result> => {
    const log = commandLog(context, 'error');
    const tell = toPerson(context);
    const lookUp: LookUp = (id, most, stopping) => lookUpHeld({ config, clock, log, tell }, store, id, most, stopping);
    const before = store.runs.get(runId)?.restored ?? 0;
    const decision = { who: commandUser(), action, target: String(runId), argument: null };
    const { outcome } = await reviewNow({ store, clock, log, lookUp, tell }, decision, signal);
    const run = requireRun(store, runId);
    if (action === 'check') return { json: { run: runId, outcome }, text: outcome ?? '' };
    const json = action === 'undo' ? { run: runId, restored: run.restored - before } : runJson(run);
    return { json, text: outcome ?? '' };
  });
}

export function decideCommands(context: CommandContext): Command[] {
  return [reviewCommand(context, 'approve'), reviewCommand(context, 'reject')];
}
