import type { Command } from 'commander';
import { sourceIdentity } from '../catalog/source.ts';
import { type Config, requireSource } from '../config.ts';
import { runJson } from '../report/run.ts';
import { plural } from '../report/text.ts';
import { startEmbeddedQueue } from '../roles/pipeline.ts';
import { holdLease } from '../store/hold-lease.ts';
import type { Leased } from '../store/lease.ts';
import type { Store } from '../store/store.ts';
import type { KeeperWriter } from '../store/writers.ts';
import { recheck } from '../sync/recheck-held.ts';
import { approveRun, rejectRun, requireHeld, undoRun } from '../sync/review-run.ts';
import { requireSameSource } from '../sync/source.ts';
import type { CommandContext } from './shared/context.ts';
import type { Result } from './shared/format.ts';
import { runCommand } from './shared/mirror.ts';
import { checkPause, commandLog, toPerson } from './shared/notices.ts';

/** A run to review. The lease of its mirror is held, so that no run writes meanwhile. */
interface Review {
  readonly context: CommandContext;
  readonly config: Config;
  readonly store: Store;
  readonly leased: Leased<KeeperWriter>;
  readonly runId: number;
}

type Decide = (review: Review) => Promise<Result>;

/** Looks up the products that a run would remove. @returns ids of those that still exist; none without a lookup path */
async function existing({ context, config, store, runId }: Review): Promise<readonly number[]> {
  if (config.lookupPath === undefined) return [];
  const { clock, signal } = context;
  const source = requireSource(config);
  requireSameSource(store, sourceIdentity(source));
  checkPause(store, clock.now());
  const log = commandLog(context, 'error');
  const lookups = startEmbeddedQueue({ config: source, clock, log, tell: toPerson(context) }, store);
  try {
    return await recheck(store, lookups.queue, runId, signal);
  } finally {
    await lookups.stop();
  }
}

const approve: Decide = async (review) => {
  const { context, store, leased, runId } = review;
  const before = requireHeld(store, runId);
  const held = store.removals.heldCount(runId);
  const spared = await existing(review);
  const run = approveRun(leased, runId, context.clock.now(), spared);
  const removed = run.removed - before.removed;
  const kept = held > removed ? `; ${plural(held - removed, 'product')} kept because the source still has them` : '';
  return { json: runJson(run), text: `run ${runId} is approved: ${plural(removed, 'product')} removed${kept}` };
};

const reject: Decide = async ({ leased, runId }) => {
  return { json: runJson(rejectRun(leased, runId)), text: `run ${runId} is rejected: nothing is removed` };
};

const undo: Decide = async ({ context, leased, runId }) => {
  const restored = undoRun(leased, runId, context.clock.now());
  const none = `run ${runId} removed nothing that could be restored`;
  const text = restored === 0 ? none : `restored ${plural(restored, 'product')} that run ${runId} removed`;
  return { json: { run: runId, restored }, text };
};

function reviewCommand(context: CommandContext, name: string, decide: Decide): Command {
  return runCommand(context, name, 'write', (store, runId, config) =>
    holdLease(store.keeperLease, context.clock, commandLog(context, 'error'), (leased) =>
      decide({ context, config, store, leased, runId }),
    ),
  );
}

export function undoCommand(context: CommandContext): Command {
  return reviewCommand(context, 'undo', undo).description('restore what a run removed, as new changes');
}

export function decideCommands(context: CommandContext): Command[] {
  return [reviewCommand(context, 'approve', approve), reviewCommand(context, 'reject', reject)];
}
