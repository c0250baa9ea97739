import { withAbort } from '../base/abort.ts';
import type { Clock } from '../base/clock.ts';
import { CatchwordError, fromErrorRecord } from '../base/errors.ts';
import { type FetchOutcome, type FetchTask, taskId } from '../catalog/page-types.ts';
import { canLookUp } from '../client/catalog-client.ts';
import type { PageQueue } from '../queue/queue-port.ts';
import type { HeldProduct } from '../store/rows/removals.ts';
import type { Reader } from '../store/schema/reader.ts';

/** Higher than the pass numbers of any run. */
const RECHECK_PASS = 1_000_000;
const ATTEMPTS = 5;
/** Products that are known to exist, of which the lookups must find one. */
const CONTROLS = 3;
/** For a longer list an evenly spread sample is looked up, to bound the requests: runs cannot start meanwhile. */
const SAMPLE = 200;

/** How often lookups without an answer are asked for again: a queue may lose tasks. Milliseconds. */
const REPEAT_MS = 5_000;

interface Lookups {
  readonly queue: PageQueue;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** Makes these lookups. @returns ids of the products that the source has and has not withdrawn */
async function lookUp({ queue, clock, signal }: Lookups, tasks: readonly FetchTask[]): Promise<Set<number>> {
  const found = new Set<number>();
  const pending = new Map(tasks.map((task) => [taskId(task), task]));
  const answered = new AbortController();

  async function take(outcome: FetchOutcome): Promise<void> {
    const { task } = outcome.kind === 'captured' ? outcome.captured : outcome;
    // A queue may deliver an outcome twice.
    if (!pending.delete(taskId(task))) return;
    if (outcome.kind === 'failed') return answered.abort(fromErrorRecord(outcome.error));
    const { items } = outcome.captured.page;
    if (items.count > items.withdrawn.length) found.add(task.window.page);
    if (pending.size === 0) answered.abort();
  }

  if (pending.size > 0) await queue.consume(take);
  while (pending.size > 0 && !answered.signal.aborted) {
    if (signal.aborted) throw new CatchwordError('INTERRUPTED', 'interrupted; nothing was decided');
    await queue.add([...pending.values()]);
    await withAbort([signal, answered.signal], (over) => clock.sleep(REPEAT_MS, over)).catch(() => {});
  }
  if (answered.signal.reason instanceof CatchwordError) throw answered.signal.reason;
  return found;
}

/**
 * Looks up the products that a held run would remove.
 * @returns ids of products that the source still has
 * @throws CatchwordError SOURCE_REFUSED if the lookups find nothing, not even products that exist; RUN_NOT_ACTIVE if
 *   some of the sample of a long list still exist; any error of a lookup
 */
export async function recheck(store: Reader, runId: number, lookups: Lookups): Promise<readonly number[]> {
  const held = store.removals.held(runId);
  if (held.length === 0) return [];
  const step = Math.max(1, held.length / SAMPLE);
  const size = Math.min(SAMPLE, held.length);
  const asked = Array.from({ length: size }, (_, at) => held[Math.floor(at * step)] as HeldProduct);
  const common = { mirror: store.incarnation, runId, pass: RECHECK_PASS, from: null, maxAttempts: ATTEMPTS };
  const tasks = [...store.removals.controls(CONTROLS), ...asked]
    .filter(({ vbid }) => canLookUp(vbid))
    .map(({ id, vbid }): FetchTask => ({ ...common, window: { page: id, perPage: 1 }, vbid }));
  const { queue } = lookups;
  // An earlier answer says nothing about now.
  await queue.drop(runId);
  let found: Set<number>;
  try {
    found = await lookUp(lookups, tasks);
  } finally {
    await queue.drop(runId);
  }
  const alive = asked.filter(({ id }) => found.has(id)).map(({ id }) => id);
  if (found.size === 0) {
    const hint =
      'Check CATCHWORD_LOOKUP_PATH with npx catchword doctor. If the catalog really is empty, unset it and approve.';
    throw new CatchwordError('SOURCE_REFUSED', 'the lookup finds nothing, not even products that should exist', {
      hint,
    });
  }
  if (alive.length === 0 || asked.length === held.length) return alive;
  const hint = 'The list is outdated and too long to look up: make a new one with npx catchword sync --full.';
  const what = `of ${asked.length} products looked up, ${alive.length} still exist`;
  throw new CatchwordError('RUN_NOT_ACTIVE', what, { hint });
}
