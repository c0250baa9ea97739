import type { Proof, Run } from '../catalog/run.ts';
import { CatchwordError } from '../errors.ts';
import type { Store } from '../store/store.ts';

/** Rejected items are of use while somebody looks for the reason. */
const KEEP_REJECTED_MS = 30 * 86_400_000;

export interface Closing {
  /** Whether the last delta fitted in one response. */
  readonly closed: boolean;
  /** Responses of the run's list: a delta of one is exact without a proof. */
  readonly windows: number;
}

function proofOf(run: Run, { closed, windows }: Closing): { proof: Proof | null; reasons: string[] } {
  if (run.kind === 'delta' && windows === 1) return { proof: null, reasons: [] };
  const reasons = ['plain pages do not overlap, so a product that crossed a page boundary may have been missed'];
  if (!closed) reasons.push('the source changed faster than its deltas could be read');
  return { proof: 'open', reasons };
}

/** Living products that no window and no delta of the run held. */
function countMissing(store: Store, runId: number): number {
  const seen = new Uint8Array((store.products.lastId() >> 3) + 1);
  let count = 0;
  for (const ids of store.runs.eachIds(runId)) {
    for (const id of ids) {
      const bit = 1 << (id & 7);
      const byte = seen[id >> 3] ?? 0;
      if (id === 0 || (byte & bit) !== 0) continue;
      seen[id >> 3] = byte | bit;
      count++;
    }
  }
  // Whatever a run reads is living from then on, so the difference is what it did not see.
  return store.products.living() - count;
}

/**
 * Ends a run that has read everything: counts, proof, watermark, state, in one transaction.
 * @param nowMs local clock
 * @throws CatchwordError LEASE_LOST, RUN_CANCELLED
 */
export function finishRun(store: Store, epoch: number, runId: number, closing: Closing, nowMs: number): Run {
  return store.write(() => {
    store.lease.check(epoch);
    const run = requireRun(store, runId);
    if (run.state === 'cancelled') throw new CatchwordError('RUN_CANCELLED', `run ${runId} was cancelled`);
    const missing = run.kind === 'full' ? countMissing(store, runId) : 0;
    const counts = { ...store.runs.counts(runId), missing };
    store.products.ensureLookups();
    store.runs.end(runId, { state: 'complete', finishedAt: nowMs, counts, ...proofOf(run, closing), error: null });
    if (run.sourceTime !== null) store.advanceWatermark(run.sourceTime);
    store.runs.prune(runId, nowMs - KEEP_REJECTED_MS);
    return requireRun(store, runId);
  });
}

/** Ends a run that cannot go on, keeping what it applied. */
export function failRun(store: Store, epoch: number, runId: number, error: CatchwordError, nowMs: number): void {
  store.write(() => {
    store.lease.check(epoch);
    const run = requireRun(store, runId);
    if (run.state === 'cancelled') return;
    store.products.ensureLookups();
    const text = `${error.code}: ${error.message}`;
    store.runs.end(runId, {
      state: 'failed',
      finishedAt: nowMs,
      counts: store.runs.counts(runId),
      proof: null,
      reasons: [],
      error: text,
    });
  });
}

/**
 * Stops a run from another process: the keeper that works on it notices at its next page.
 * @throws CatchwordError NOT_FOUND, RUN_NOT_ACTIVE
 */
export function cancelRun(store: Store, runId: number, nowMs: number): Run {
  return store.write(() => {
    const run = requireRun(store, runId);
    if (run.finishedAt !== null) {
      throw new CatchwordError('RUN_NOT_ACTIVE', `run ${runId} is ${run.state} already`, {
        hint: 'Only a run that is planned or reading can be cancelled: npx catchword runs.',
      });
    }
    store.products.ensureLookups();
    const counts = store.runs.counts(runId);
    store.runs.end(runId, { state: 'cancelled', finishedAt: nowMs, counts, proof: null, reasons: [], error: null });
    return requireRun(store, runId);
  });
}

/** @throws CatchwordError NOT_FOUND */
export function requireRun(store: Store, runId: number): Run {
  const run = store.runs.get(runId);
  if (run === undefined) {
    throw new CatchwordError('NOT_FOUND', `there is no run ${runId}`, { hint: 'List them with: npx catchword runs.' });
  }
  return run;
}
