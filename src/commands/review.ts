import { Command } from 'commander';
import type { Run } from '../catalog/run.ts';
import { sourceIdentity } from '../catalog/source.ts';
import { type Config, requireSource } from '../config.ts';
import { runJson } from '../report/run.ts';
import { holdLease } from '../store/hold-lease.ts';
import type { Leased } from '../store/lease.ts';
import { openStore, type Store } from '../store/store.ts';
import type { KeeperWriter } from '../store/writers.ts';
import { recheck } from '../sync/recheck-held.ts';
import { approveRun, rejectRun, requireHeld, undoRun } from '../sync/review-run.ts';
import { requireSameSource } from '../sync/source.ts';
import { commandLog } from './shared/command-log.ts';
import type { CommandContext } from './shared/context.ts';
import { count as number, plural, printJson, printLine, table, wholeNumber } from './shared/format.ts';
import { startLookups } from './shared/pipeline.ts';
import { checkPause, toPerson } from './shared/rate-limit.ts';
import { loadSettings } from './shared/settings.ts';

/** How many products are listed for a person; `--json` lists all. */
const LISTED = 50;

/** What a held run would remove, with titles. */
export function heldLines(store: Store, runId: number): string {
  const count = store.removals.heldCount(runId);
  const rows = store.removals.held(runId, LISTED).map(({ vbid, title }) => [vbid, title]);
  const rest = count - rows.length;
  return [
    `would remove ${plural(count, 'product')}:`,
    table(['vbid', 'title'], rows),
    ...(rest > 0 ? [`… and ${number(rest)} more: npx catchword run ${runId} --json`] : []),
    `decide with: npx catchword approve ${runId}, or: npx catchword reject ${runId}`,
  ].join('\n');
}

/** All of it, for a program. */
export function heldJson(store: Store, runId: number): Record<string, unknown>[] {
  return store.removals.held(runId).map(({ vbid, title }) => ({ vbid, title }));
}

/** Opens the mirror and takes the lease, so that no run writes meanwhile. */
async function withLease<T>(
  context: CommandContext,
  work: (store: Store, leased: Leased<KeeperWriter>, config: Config) => Promise<T>,
): Promise<T> {
  const config = loadSettings(context, 'nothing');
  const store = openStore(config.db, { mustExist: true, mode: config.dbMode });
  try {
    return await holdLease(store.keeperLease, context.clock, commandLog(context, 'error'), (leased) =>
      work(store, leased, config),
    );
  } finally {
    store.close();
  }
}

/** Ids of products that the source, asked one by one, still has. Empty where it cannot be asked. */
async function stillThere(
  context: CommandContext,
  config: Config,
  store: Store,
  runId: number,
): Promise<readonly number[]> {
  if (config.lookupPath === undefined) return [];
  const source = requireSource(config);
  requireSameSource(store, sourceIdentity(source));
  checkPause(store, context.clock.now());
  const { clock } = context;
  const lookups = startLookups(
    { config: source, clock, log: commandLog(context, 'error'), tell: toPerson(context) },
    store,
  );
  try {
    return await recheck(store, lookups.queue, runId, context.signal);
  } finally {
    await lookups.stop();
  }
}

function printRun(context: CommandContext, run: Run, json: boolean | undefined, text: string): void {
  if (json) printJson(context, runJson(run));
  else printLine(context, text);
}

function approveCommand(context: CommandContext): Command {
  return new Command('approve')
    .description('apply the removals that a run holds (products seen since are kept)')
    .argument('<run>', 'number of the run', wholeNumber('<run>', 1))
    .option('--json', 'print one JSON document')
    .action((id: number, options: { json?: boolean }) =>
      withLease(context, async (store, leased, config) => {
        const before = requireHeld(store, id);
        const listed = store.removals.heldCount(id);
        const alive = await stillThere(context, config, store, id);
        const run = approveRun(leased, id, context.clock.now(), alive);
        const removed = run.removed - before.removed;
        const stay = listed - removed;
        const kept = stay > 0 ? `; ${plural(stay, 'product')} found alive, which stay${stay === 1 ? 's' : ''}` : '';
        printRun(context, run, options.json, `run ${id} is approved: ${plural(removed, 'product')} removed${kept}`);
      }),
    );
}

function rejectCommand(context: CommandContext): Command {
  return new Command('reject')
    .description('drop the removals that a run holds')
    .argument('<run>', 'number of the run', wholeNumber('<run>', 1))
    .option('--json', 'print one JSON document')
    .action((id: number, options: { json?: boolean }) =>
      withLease(context, async (_store, leased) => {
        const run = rejectRun(leased, id);
        printRun(context, run, options.json, `run ${id} is rejected: nothing is removed`);
      }),
    );
}

/** `runs undo <id>`. */
export function undoCommand(context: CommandContext): Command {
  return new Command('undo')
    .description('restore what a run removed, as restored changes')
    .argument('<id>', 'number of the run', wholeNumber('<id>', 1))
    .option('--json', 'print one JSON document')
    .action((id: number, options: { json?: boolean }) =>
      withLease(context, async (_store, leased) => {
        const restored = undoRun(leased, id, context.clock.now());
        if (options.json) printJson(context, { run: id, restored });
        else if (restored === 0) printLine(context, `run ${id} removed nothing that could be restored`);
        else
          printLine(
            context,
            `${plural(restored, 'product')} that run ${id} removed ${restored === 1 ? 'is' : 'are'} back`,
          );
      }),
    );
}

export function decideCommands(context: CommandContext): Command[] {
  return [approveCommand(context), rejectCommand(context)];
}
