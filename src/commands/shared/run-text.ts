import type { Run } from '../../catalog/run.ts';
import type { Store } from '../../store/store.ts';
import type { CommandContext } from './context.ts';
import { colours, count, duration, plural, settlingText, table } from './format.ts';

/** How many held products are listed for a person; `--json` lists all. */
const LISTED = 50;

/** `, because of …`: the reasons behind a proof, on one line each. */
export function proofLine({ proof, reasons }: Run, separator = '\n           '): string[] {
  return proof === null ? [] : [`  proof    ${[proof, ...reasons].join(separator)}`];
}

/** What a run did, for a person. */
export function runSummary(context: CommandContext, run: Run): string {
  const c = colours(context, context.stdout);
  const tookMs = (run.finishedAt ?? context.clock.now()) - run.startedAt;
  const state = run.state === 'complete' ? c.green(run.state) : c.yellow(run.state);
  const counts = (['created', 'updated', 'removed', 'restored'] as const).map((op) => `${count(run[op])} ${op}`);
  const settling = settlingText(run);
  return [
    `run ${run.id}: ${run.kind} load ${state} in ${duration(tookMs)}`,
    `  read     ${plural(run.items, 'product')}, ${plural(run.pages, 'page')}, ${plural(run.requests, 'request')}`,
    `  changes  ${counts.join(', ')}`,
    ...(settling === null ? [] : [`  ${settling}`]),
    ...(run.rejected > 0 ? [`  rejected ${plural(run.rejected, 'item')}: npx catchword run ${run.id}`] : []),
    ...(run.missing > 0 && settling === null
      ? [`  missing  ${plural(run.missing, 'product')} not seen and not removed`]
      : []),
    ...proofLine({ ...run, reasons: run.reasons.map((reason) => c.dim(reason)) }),
    ...(run.error === null ? [] : [`  error    ${run.error}`]),
  ].join('\n');
}

/** What a held run would remove, for a person. */
export function heldText({ removals }: Store, runId: number): string {
  const total = removals.heldCount(runId);
  const rows = removals.held(runId, LISTED).map(({ vbid, title }) => [vbid, title]);
  const rest = total - rows.length;
  return [
    `would remove ${plural(total, 'product')}:`,
    table(['vbid', 'title'], rows),
    ...(rest > 0 ? [`… and ${count(rest)} more: npx catchword run ${runId} --json`] : []),
    `decide with: npx catchword approve ${runId}, or: npx catchword reject ${runId}`,
  ].join('\n');
}
