import { withAbort } from '@catchword/base/abort';
import type { Clock } from '@catchword/base/clock';
import { CatchwordError, fromErrorRecord } from '@catchword/base/errors';
import { type FetchOutcome, type FetchTask, taskId } from '@catchword/catalog/page-types';
import type { PageQueue } from '@catchword/queue/queue-port';
import { canLookUp } from 'catchword-client/catalog-client';
import type { HeldProduct } from '../store/rows/removals.ts';
import type { Reader } from '../store/schema/reader.ts';

/** Higher than the pass numbers of any run. */
const RECHECK_PASS = 1_000_000;
const ATTEMPTS = 5;
/** Products that are known to exist, of which the lookups must find one. */
const CONTROLS = 3;

/** How often lookups without an answer are asked for again: a queue may lose tasks. Milliseconds. */
const REPEAT_MS = 5_000;

interface Lookups {
  readonly queue: PageQueue;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** Makes these lookups. @returns the products that the source has, by id: whether it has withdrawn them */
async function lookUp({ queue, clock, signal }: Lookups, tasks: readonly FetchTask[]): Promise<Map<number, boolean>> {
  const found = new Map<number, boolean>();
  const pending = new Map(tasks.map((task) => [taskId(task), task]));
  const answered = new AbortController();

  async function take(outcome: FetchOutcome): Promise<void> {
    const { task } = outcome;
    // A queue may deliver an outcome twice.
    if (!pending.delete(taskId(task))) return;
    if (outcome.kind === 'failed') return answered.abort(fromErrorRecord(outcome.error));
    const { items } = outcome.page;
    if (items.count > 0) found.set(task.window.page, items.count === items.withdrawn.length);
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

/** What the source says of the `asked` products of a sample; the run holds `held` in all. */
export interface SampleAnswer extends Readonly<Record<'living' | 'withdrawn' | 'gone', readonly HeldProduct[]>> {
  readonly held: number;
  readonly asked: number;
}

/**
 * Looks up products that a held run would remove: at most `most`, evenly spread, to bound the requests, because runs cannot
 * start meanwhile.
 * @throws CatchwordError SOURCE_REFUSED if the lookups find nothing, not even products that exist; any error of a lookup
 */
export async function recheck(store: Reader, runId: number, most: number, lookups: Lookups): Promise<SampleAnswer> {
  const held = store.removals.held(runId);
  if (held.length === 0) return { held: 0, asked: 0, living: [], withdrawn: [], gone: [] };
  const step = Math.max(1, held.length / most);
  const size = Math.min(most, held.length);
  const asked = Array.from({ length: size }, (_, at) => held[Math.floor(at * step)] as HeldProduct);
  const common = { mirror: store.incarnation, runId, pass: RECHECK_PASS, from: null, maxAttempts: ATTEMPTS };
  const tasks = [...store.removals.controls(CONTROLS), ...asked]
    .filter(({ vbid }) => canLookUp(vbid))
    .map(({ id, vbid }): FetchTask => ({ ...common, window: { page: id, perPage: 1 }, vbid }));
  const { queue } = lookups;
  // An earlier answer says nothing about now.
  await queue.drop(runId);
  let found: Map<number, boolean>;
  try {
    found = await lookUp(lookups, tasks);
  } finally {
    await queue.drop(runId);
  }
  if (![...found.values()].includes(false)) {
    const hint =
      'Check CATCHWORD_LOOKUP_PATH with npx catchword doctor. If the catalog really is empty, unset it and approve.';
    throw new CatchwordError('SOURCE_REFUSED', 'the lookup finds nothing, not even products that should exist', {
      hint,
    });
  }
  const said = (answer: boolean | undefined) => asked.filter(({ id }) => found.get(id) === answer);
  return { held: held.length, asked: asked.length, living: said(false), withdrawn: said(true), gone: said(undefined) };
}
