import { CatchwordError, hasCode, messageOf } from '@catchword/base/errors';
import { iso } from '@catchword/base/iso-time';
import type { Run } from '@catchword/catalog/run-types';
import { isPassing } from 'catchword-client/errors/service-error';
import type { Pass } from '../store/rows/runs.ts';
import type { LeasedKeeper } from '../store/schema/writers.ts';
import { createPageApplier } from './apply-page.ts';
import { requireUsablePass } from './check-progress.ts';
import { ageClock, ensureLookups, failRun, finishRun, requireRun } from './finish-run.ts';
import { DATE_STEP_MS, nextStep } from './next-step.ts';
import { firstSize, type Resize } from './page-size.ts';
import { pruneLog } from './prune-log.ts';
import { createRunPruning } from './prune-runs.ts';
import { interruption, type PassContext, readPass } from './read-pass.ts';

export interface Progress {
  readonly runId: number;
  readonly kind: Run['kind'];
  readonly pass: number;
  /** Windows read so far, and windows known so far, over all passes. */
  readonly pages: number;
  readonly pagesKnown: number;
  readonly items: number;
  readonly requests: number;
  /** Set while the run waits before it reads its last delta. */
  readonly settling: Pick<Run, 'settlesAt' | 'missing'> | null;
}

export interface ExecutorOptions extends Omit<PassContext, 'applier' | 'signal' | 'consumer'> {
  readonly onProgress?: (progress: Progress) => void;
}

type Execution = ExecutorOptions &
  PassContext & {
    readonly run: Run;
    readonly leased: LeasedKeeper;
    readonly pruneRuns: ReturnType<typeof createRunPruning>;
  };

/** How often a settling run checks whether it was cancelled. */
const SETTLE_STEP_MS = 5_000;
/** If the clock jumps by more, the displayed end of the wait moves. */
const SHOWN_STEP_MS = 10_000;

/** After these errors the run can be resumed; any other error fails it. */
const RESUMABLE = new Set([
  'INTERRUPTED',
  'LEASE_LOST',
  'MIRROR_BUSY',
  'MIRROR_DISK_LOW',
  'MIRROR_REPLACED',
  'MIRROR_WRITE_FAILED',
  'QUEUE_UNAVAILABLE',
  'SOURCE_RATE_LIMITED',
  'SOURCE_TIMEOUT',
  'SOURCE_UNAVAILABLE',
]);
/** The same for a run that has not read a page yet: only if it was stopped from outside, or may not begin. */
const RESUMABLE_BEFORE_FIRST_PAGE = new Set(['INTERRUPTED', 'LEASE_LOST', 'MIRROR_DISK_LOW']);

/**
 * Whether a run that the source refused to answer must not go on. After 401 and 403 another key may be set, which may see
 * other products. What refuses a resumed run from its first request on may do so for ever, and no delta would be read.
 */
function isRefusedForGood({ code, status = 500 }: CatchwordError, hasRead: boolean): boolean {
  if (code !== 'SOURCE_UNAVAILABLE' || isPassing(status)) return false;
  return status === 401 || status === 403 || !hasRead;
}

function readOne(execution: Execution, pass: Pass): Promise<Resize | null> {
  const { run, store, onProgress } = execution;
  let { pages, items, requests } = store.runs.counts(run.id);
  const earlier = pages - store.runs.checkpoints(run.id, pass.pass).length;
  return readPass(pass, execution, (captured, windows) => {
    pages++;
    items += captured.page.items.count;
    requests += captured.requests;
    const about = { runId: run.id, kind: run.kind, pass: pass.pass, settling: null };
    onProgress?.({ ...about, pages, pagesKnown: earlier + windows, items, requests });
  });
}

/** Errors are only logged: pruning is retried after the next run. */
async function prune({ store, leased, settings, clock, log, pruneRuns }: Execution, run: Run): Promise<void> {
  const now = clock.now();
  const ageMs = ageClock(run, now);
  try {
    const dropped = pruneLog(store, leased, settings, now, log, ageMs);
    if (dropped > 0) log.info({ dropped, upTo: store.changes.prunedTo() }, 'change log pruned');
    const gone = await pruneRuns(leased, settings.runRetentionMs, ageMs);
    if (gone > 0) log.info({ dropped: gone }, 'old runs deleted');
  } catch (error) {
    log.warn({ reason: messageOf(error) }, 'the change log, or old runs, could not be pruned');
  }
}

/** Notes another page size only after a whole pass was read with it: a source that is down refuses every size. */
function learnSize({ store, leased, settings, clock, log }: Execution, { kind, perPage, sizeIgnored }: Pass): void {
  const [asked, at] = [settings.perPage, clock.now()];
  const isListed = kind !== 'list' || perPage === store.source.listedSize();
  if (sizeIgnored || (isListed && perPage >= firstSize(asked, kind, store.source, at))) return;
  leased.write(({ source }) => source.learnPage({ asked, perPage, at }));
  if (perPage < asked) log.info({ asked, answered: perPage }, 'runs begin with this page size for a week');
}

/** Reads the last pass to its end; in plain pages if the source ignores the requested size, in smaller ones if it must. */
async function readLast(execution: Execution): Promise<void> {
  const { run, store, leased, queue, log } = execution;
  for (;;) {
    const pass = store.runs.passes(run.id).at(-1);
    if (pass === undefined) throw new CatchwordError('NOT_FOUND', `run ${run.id} has no pass`);
    const resized = await readOne(execution, pass);
    if (resized === null) {
      requireUsablePass(store, pass);
      return learnSize(execution, pass);
    }
    const { perPage, isFixed } = resized;
    const fields = { run: run.id, asked: pass.perPage, answered: perPage };
    log.warn(fields, isFixed ? 'the source ignores the requested page size' : 'smaller pages are tried');
    await queue.drop(run.id);
    leased.write(({ runs }) => runs.resize(run.id, pass.pass, perPage, isFixed));
  }
}

async function readAll(execution: Execution): Promise<Run> {
  const { run, leased, store, clock, settings, signal } = execution;
  store.products.keepUndo();
  for (;;) {
    await readLast(execution);
    const step = nextStep(store, requireRun(store, run.id), settings);
    if (step.kind === 'finish') {
      ensureLookups(leased);
      return finishRun(leased, run.id, step.conclusion, settings, clock.now());
    }
    const { pass, seams } = step;
    // Before the run waits, so that its page shows them meanwhile.
    if (seams !== null) leased.write(({ runs }) => runs.noteSeams(run.id, seams));
    if (step.kind === 'settle') await settle(execution, pass, step.missing);
    // A second delta within the same second would hold the same changes again. The first one does not wait, because the
    // delta after it is usually empty.
    const deltas = store.runs.passes(run.id).filter(({ kind }) => kind === 'delta').length;
    if (pass.kind === 'delta' && deltas > 1) await clock.sleep(DATE_STEP_MS, signal);
    leased.write(({ runs }) => {
      runs.addPass(pass);
      if (step.kind === 'settle') runs.settle(run.id, null, step.missing);
    });
  }
}

/**
 * Waits for the overlap, or for the rest of a wait that an earlier process started. Timers count the wait, and the
 * rest is noted regularly, because the clock may jump, even while no process runs.
 * @throws CatchwordError RUN_CANCELLED, LEASE_LOST; the reason with which `signal` aborts
 */
async function settle(execution: Execution, { runId, pass }: Pass, missing: number): Promise<void> {
  const { run, leased, store, clock, log, settings, signal, onProgress } = execution;
  const noted = store.runs.settleWait(runId);
  let leftMs = Math.min(settings.overlapMs, noted?.leftMs ?? settings.overlapMs);
  let settlesAt = noted?.until ?? 0;
  if (leftMs > 0) {
    const fields = { run: runId, until: iso(clock.now() + leftMs), missing };
    log.info(fields, 'settling: waiting before the last delta, because deltas may be late');
  }
  while (leftMs > 0) {
    const until = clock.now() + leftMs;
    if (Math.abs(until - settlesAt) > SHOWN_STEP_MS) settlesAt = until;
    const wait = { until: settlesAt, leftMs };
    leased.write(({ runs }) => runs.settle(runId, wait, missing));
    const { pages, items, requests } = store.runs.counts(runId);
    const about = { runId, kind: run.kind, pass, settling: { settlesAt, missing } };
    onProgress?.({ ...about, pages, pagesKnown: pages, items, requests });
    const pauseMs = Math.min(leftMs, SETTLE_STEP_MS);
    await clock.sleep(pauseMs, signal);
    leftMs -= pauseMs;
    if (store.runs.state(runId) === 'cancelled') {
      throw new CatchwordError('RUN_CANCELLED', `run ${runId} was cancelled`);
    }
  }
}

/** Notes that the run has failed, unless it can be resumed. */
function noteFailure({ run, leased, store, clock, log }: Execution, error: CatchwordError): void {
  const { pages } = requireRun(store, run.id);
  const resumable = pages > 0 ? RESUMABLE : RESUMABLE_BEFORE_FIRST_PAGE;
  if (resumable.has(error.code) && !isRefusedForGood(error, pages > run.pages)) return;
  try {
    failRun(leased, run.id, error, clock.now());
  } catch (secondary) {
    log.warn({ run: run.id, reason: messageOf(secondary) }, 'the failure of the run could not be noted');
  }
}

async function execute(execution: Execution): Promise<Run> {
  const { run, applier, queue, log, signal, consumer } = execution;
  let isOurs = true;
  try {
    // Not between runs: another keeper of this mirror would wait for pages that this one has taken.
    await queue.consume(async (outcome) => consumer.take(outcome));
    const finished = await readAll(execution);
    await prune(execution, finished);
    return finished;
  } catch (thrown) {
    const isStopped = signal.aborted && (!(thrown instanceof CatchwordError) || thrown.code === 'INTERRUPTED');
    const error = isStopped ? interruption(signal) : thrown;
    try {
      applier.flush();
    } catch (secondary) {
      // The error that stopped the run may also stop this. The pages of the batch are read again.
      log.debug({ run: run.id, reason: messageOf(secondary) }, 'the last batch was not applied');
    }
    if (error instanceof CatchwordError) noteFailure(execution, error);
    isOurs = !hasCode(error, 'LEASE_LOST');
    throw error;
  } finally {
    // Otherwise the tasks belong to the keeper that goes on with the run.
    if (isOurs) await queue.drop(run.id);
    await queue.rest();
  }
}

/** Executes one run at a time. @returns reads a planned or unfinished run to its end, and throws as `Keeper.run` */
export function createRunExecutor(options: ExecutorOptions) {
  const { store, clock, log, settings } = options;
  const consumer: PassContext['consumer'] = { take: () => {} };
  const pruneRuns = createRunPruning(store, clock);
  return (run: Run, leased: LeasedKeeper, signal: AbortSignal): Promise<Run> => {
    const applier = createPageApplier({ ...settings, store, leased, clock, log, runId: run.id });
    return execute({ ...options, run, leased, applier, signal, consumer, pruneRuns });
  };
}
