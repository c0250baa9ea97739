import { CatchwordError } from '@catchword/base/errors';
import type { Reason } from '@catchword/catalog/reasons';
import { type Run, whyNoRun } from '@catchword/catalog/run-types';
import { clockPutBack, deltaFrom } from '../proof/watermark.ts';
import { LOOKUPS } from '../store/rows/product-rows.ts';
import type { Reader } from '../store/schema/reader.ts';
import type { KeeperWriter, LeasedKeeper, RequestWriter } from '../store/schema/writers.ts';
import type { Store } from '../store/store.ts';
import { commonChange } from './common-change.ts';
import { passClocks, steadyAt } from './evidence.ts';
import type { RunSettings } from './run-settings.ts';
import { noteFullRead } from './source-binding.ts';
import { sweep } from './sweep.ts';
import type { Conclusion } from './verdict.ts';

/** The earlier one of this machine's clock, which may be ahead, and the source's: so nothing is dropped too soon. */
export function ageClock({ sourceTime }: Run, nowMs: number): number {
  return Math.min(nowMs, sourceTime ?? nowMs);
}

/** Restricts what is concluded from a run that had to settle and could not. */
function withhold(conclusion: Conclusion): Conclusion {
  if (!conclusion.mustSettle) return conclusion;
  const reasons: Reason[] = [...conclusion.reasons, { code: 'unsettled' }];
  return { ...conclusion, proof: 'open', reasons, countAgrees: false, deltasRead: false, listRead: false };
}

/** Moves the watermark to the run's source time, if every change up to then is in the mirror. */
function moveWatermark(writer: KeeperWriter, run: Run, conclusion: Conclusion, held: boolean, overlapMs: number): void {
  if (run.sourceTime === null) return;
  const readUpTo = writer.readUpTo();
  // A list that is held or empty looks wrong, so later deltas still have to supply what it did not show.
  const sealed = conclusion.listRead && !held && conclusion.evidence.numItems > 0;
  const clocks = passClocks(writer, run.id);
  // A full run's deltas start at its own start; whether they reach back to the watermark is known only by the same
  // clock.
  const sameClock = run.kind === 'delta' || clockPutBack(writer.clockSeen(), clocks, overlapMs) === null;
  // Less the overlap: changes that became visible late since the watermark was set have an earlier time.
  const reachesBack = readUpTo === null || conclusion.deltaFrom <= deltaFrom(readUpTo, overlapMs);
  const read = conclusion.deltasRead && reachesBack && (readUpTo === null || sameClock);
  // Before the first watermark, later deltas do not depend on earlier ones.
  const first = run.kind === 'full' && readUpTo === null;
  const isMoving = sealed || read || first;
  const reference = isMoving ? clocks[0] : writer.clockSeen();
  const forward = clocks[0] && steadyAt(writer, run.id, clocks[0], overlapMs);
  if (isMoving) writer.advanceWatermark(run.sourceTime, clocks[0]?.local ?? run.startedAt);
  if (isMoving && forward != null) writer.readAgainFrom(forward);
  // What a run that ended early has read may have changed since, and this run may not have read it.
  if (first && !sealed) writer.readAgainFrom(writer.firstAnswer() ?? run.sourceTime);
  // If the clock is forward again when the next run starts, only this run has seen that changes may have an earlier time.
  const putBack = clockPutBack(reference, clocks, overlapMs);
  if (putBack !== null) writer.readAgainFrom(putBack + overlapMs);
}

/** Cancels earlier full runs that wait for a decision: their lists of removals are outdated. */
function supersede(writer: KeeperWriter, run: Run): void {
  for (const { id } of writer.runs.held()) {
    if (id >= run.id) continue;
    writer.removals.release(id);
    writer.runs.amend(id, { state: 'cancelled', error: `superseded by run ${run.id}; nothing was removed` });
  }
}

/**
 * Ends a run that has read everything: sweep, counts, proof, watermark, state, in one transaction. @param nowMs local clock
 * @throws CatchwordError LEASE_LOST, RUN_CANCELLED
 */
export function finishRun(
  leased: LeasedKeeper,
  runId: number,
  concluded: Conclusion,
  settings: RunSettings,
  nowMs: number,
): Run {
  const conclusion = withhold(concluded);
  return leased.write((writer) => {
    const run = requireRun(writer, runId);
    if (run.state === 'cancelled') throw new CatchwordError('RUN_CANCELLED', `run ${runId} was cancelled`);
    const swept = run.kind === 'full' ? sweep(writer, run, conclusion, settings) : null;
    const counts = writer.runs.counts(runId);
    const common = commonChange(writer, runId, counts.updated, settings.ignoreFields);
    // An update may be of a product that was updated before.
    const updatedShare = Math.min(1, counts.updated / Math.max(1, writer.products.living()));
    const changedSettings = run.kind === 'full' ? noteFullRead(writer, runId, settings) : '';
    const held = swept?.hold != null;
    const missing = [...(swept?.missing ?? []), ...(held ? swept.remove : [])];
    const removed = swept === null || held ? 0 : writer.removals.remove(swept.remove, runId, nowMs);
    if (held) writer.removals.hold(runId, swept.remove);
    if (swept !== null) supersede(writer, run);
    // A run whose count does not agree confirms no missing product.
    const confirms = swept !== null && (conclusion.proof === 'sealed' || conclusion.countAgrees);
    if (confirms) writer.removals.noteMissing(missing);
    else writer.removals.noteSeen(writer.runs.eachIds(runId));
    writer.runs.end(runId, {
      state: held ? 'held' : 'complete',
      finishedAt: nowMs,
      // Counts each product once, even if it was in several windows.
      counts: {
        ...counts,
        items: conclusion.assessment.seen.size + counts.rejected,
        removed: counts.removed + removed,
        missing: missing.length,
      },
      proof: conclusion.proof,
      reasons: [...conclusion.reasons, ...[swept?.hold ?? []].flat()],
      error: null,
      evidence: { ...conclusion.evidence, updatedShare, ...common, ...(changedSettings !== '' && { changedSettings }) },
    });
    writer.schedule.clearRetry(run.kind);
    moveWatermark(writer, run, conclusion, held, settings.overlapMs);
    writer.runs.dropCheckpoints(runId);
    writer.runs.noteSize(runId);
    return requireRun(writer, runId);
  });
}

type EarlyEnd = Pick<Run, 'state' | 'error' | 'finishedAt'>;

/**
 * Creates the indexes that a mirror does not have while it is filled. Each in a transaction of its own: a large mirror
 * takes seconds for each, and other processes wait to write.
 */
export function ensureLookups(leased: {
  write: (work: (writer: Pick<RequestWriter, 'products'>) => void) => void;
}): void {
  for (const name of LOOKUPS) leased.write(({ products }) => products.ensureLookup(name));
}

/** Ends a run that has not read everything. Applied pages are kept. */
function endEarly(writer: Pick<RequestWriter, 'removals' | 'runs'>, runId: number, end: EarlyEnd): void {
  writer.removals.noteSeen(writer.runs.eachIds(runId));
  writer.runs.end(runId, { ...end, counts: writer.runs.counts(runId), proof: null, reasons: [] });
}

export function failRun(leased: LeasedKeeper, runId: number, error: CatchwordError, nowMs: number): void {
  leased.write((writer) => {
    if (requireRun(writer, runId).state === 'cancelled') return;
    endEarly(writer, runId, { state: 'failed', finishedAt: nowMs, error: `${error.code}: ${error.message}` });
  });
  ensureLookups(leased);
}

/** Cancels a run, from any process. Its keeper notices at the next page. @throws CatchwordError NOT_FOUND, RUN_NOT_ACTIVE */
export function cancelRun(store: Store, runId: number, nowMs: number): Run {
  const cancelled = store.request((writer) => {
    const run = requireRun(writer, runId);
    if (run.finishedAt !== null) {
      const hint = 'Only a planned or reading run can be cancelled: npx catchword runs.';
      throw new CatchwordError('RUN_NOT_ACTIVE', `run ${runId} is already ${run.state}`, { hint });
    }
    endEarly(writer, runId, { state: 'cancelled', finishedAt: nowMs, error: null });
    writer.schedule.clearRetry(run.kind);
    return requireRun(writer, runId);
  });
  ensureLookups({ write: store.request });
  return cancelled;
}

/** @throws CatchwordError NOT_FOUND */
export function requireRun(store: Reader, runId: number): Run {
  const run = store.runs.get(runId);
  if (run !== undefined) return run;
  throw new CatchwordError('NOT_FOUND', whyNoRun(runId, store.runs.lastId()), {
    hint: 'List runs with: npx catchword runs.',
  });
}
