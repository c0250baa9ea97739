import { type CapturedPage, type FetchOutcome, type FetchTask, requestOf } from '../catalog/page.ts';
import type { Clock } from '../clock.ts';
import { CatchwordError, fromErrorRecord, hasCode } from '../errors.ts';
import type { Logger } from '../log.ts';
import { publish } from '../measure.ts';
import type { PageQueue } from '../queue/queue.ts';
import type { Reader } from '../store/reader.ts';
import type { Pass } from '../store/runs.ts';
import type { Applied, Applier } from './apply-page.ts';
import { watchProgress } from './check-progress.ts';
import { createPassWindows } from './pass-windows.ts';
import { requireSpace } from './require-space.ts';
import type { RunSettings } from './run-settings.ts';

/** How often unanswered tasks are added to the queue again, in case it lost them; milliseconds. */
const RECONCILE_MS = 5_000;
/** How long a page may wait in the applier's batch; milliseconds. */
const BATCH_AGE_MS = 10_000;

/** @rule 4.4-13..14 */
export interface PassContext {
  readonly store: Reader;
  readonly queue: PageQueue;
  readonly clock: Clock;
  readonly applier: Applier;
  readonly log: Logger;
  readonly settings: RunSettings;
  readonly signal: AbortSignal;
  /** Gets the queue's outcomes. A pass sets `take` while it is read. */
  readonly consumer: { take: (outcome: FetchOutcome) => void };
}

/** The error of a run that was told to stop, or that another process has taken over. */
export function interruption({ reason }: AbortSignal): CatchwordError {
  if (hasCode(reason, 'LEASE_LOST')) return reason;
  return new CatchwordError('INTERRUPTED', 'interrupted; the run resumes at the next start', {
    hint: 'Pages that were read are kept.',
  });
}

function unstableSize(task: FetchTask, perPage: number): CatchwordError {
  const hint = 'The source changes its page size between requests: set CATCHWORD_PER_PAGE to a size that it keeps.';
  const what = `requested ${task.window.perPage} products a page, got ${perPage} (${requestOf(task)})`;
  return new CatchwordError('PAGE_INVALID', what, { retryable: false, hint });
}

/**
 * Reads a pass: repeatedly adds the missing windows to the queue and applies the pages that come back. Which windows
 * are missing is known from SQLite, so a start, a resume and a queue that lost its tasks are all handled the same way.
 * @param onRead called for each window that was read
 * @returns null when every window of the pass has a checkpoint; the answered page size if the source answers pages of
 *   another size than requested
 */
export async function readPass(
  pass: Pass,
  { store, queue, clock, applier, log, settings, signal, consumer }: PassContext,
  onRead: (captured: CapturedPage, windowsKnown: number) => void,
): Promise<number | null> {
  const windows = createPassWindows(store, pass, settings);
  const checkProgress = watchProgress(store, pass, windows);
  let wake = (): void => {};
  let isReconcileDue = false;
  let failure: unknown;
  let answeredSize: number | null = null;

  function end(error: unknown): void {
    failure ??= error;
    wake();
  }

  /** Marks the pages as read that `apply` returns. */
  function note(apply: () => readonly Applied[]): void {
    try {
      for (const checkpoint of apply()) {
        windows.noteApplied(checkpoint);
        checkProgress(checkpoint);
      }
      wake();
    } catch (error) {
      end(error);
    }
  }

  /** The source ignores the requested page size: its pages are valid, but they are not the planned windows. */
  function resize({ page: { envelope }, task }: CapturedPage): void {
    if (answeredSize !== null || !windows.isPending(task.window)) return;
    if (pass.sizeIgnored || envelope.perPage < 1) end(unstableSize(task, envelope.perPage));
    else answeredSize = envelope.perPage;
    wake();
  }

  function take(captured: CapturedPage): void {
    windows.arrive(captured);
    onRead(captured, windows.size);
    note(() => applier.take(captured));
  }

  function fail({ task, error }: FetchOutcome & { kind: 'failed' }): void {
    if (pass.kind !== 'lookup' || error.code === 'INTERRUPTED') end(fromErrorRecord(error));
    else {
      log.warn({ vbid: task.vbid, code: error.code, reason: error.message }, 'a product could not be looked up');
      windows.giveUp(task.window);
      wake();
    }
  }

  /** Takes an outcome of the queue. Never throws: errors end the pass. */
  function handle(outcome: FetchOutcome): void {
    const task = outcome.kind === 'captured' ? outcome.captured.task : outcome.task;
    if (task.mirror !== store.incarnation || task.runId !== pass.runId || task.pass !== pass.pass) return;
    if (failure !== undefined || windows.isAnswered(task.window)) return;
    if (outcome.kind === 'failed') fail(outcome);
    else if (outcome.captured.page.envelope.perPage !== task.window.perPage) resize(outcome.captured);
    // Otherwise the window belongs to a plan that was replaced.
    else if (windows.isPlanned(task.window)) take(outcome.captured);
  }

  async function loop(): Promise<void> {
    for (;;) {
      if (answeredSize !== null) note(() => applier.flush());
      if (failure !== undefined) throw failure;
      if (answeredSize !== null) return;
      const tasks = windows.request();
      const pending = windows.pending();
      publish('queue', { pages: pending.length });
      if (pending.length === 0) {
        // Pages in the batch may show that the list continues.
        if (!windows.hasArrived()) return;
        note(() => applier.flush());
        // Pages that were not applied now had been applied before: they were delivered twice.
        if (windows.hasArrived()) windows.noteCheckpoints();
        continue;
      }
      const woken = new Promise<void>((resolve) => {
        wake = resolve;
      });
      const toAdd = isReconcileDue ? pending : tasks;
      isReconcileDue = false;
      if (toAdd.length > 0) requireSpace(store.path, settings.minFreeBytes);
      if (toAdd.length > 0) await queue.add(toAdd);
      await woken;
    }
  }

  async function reconcile(ended: AbortSignal): Promise<void> {
    while (!ended.aborted) {
      // Timed by sleeping, not by the clock, which may be set back meanwhile.
      await clock.sleep(RECONCILE_MS, ended).catch(() => {});
      if (ended.aborted) return;
      isReconcileDue = true;
      note(() => applier.flush(BATCH_AGE_MS));
    }
  }

  const onAbort = (): void => end(interruption(signal));
  if (signal.aborted) onAbort();
  windows.noteCheckpoints();
  signal.addEventListener('abort', onAbort, { once: true });
  consumer.take = handle;
  const ended = new AbortController();
  const reconciling = reconcile(ended.signal);
  try {
    await loop();
    return answeredSize;
  } finally {
    signal.removeEventListener('abort', onAbort);
    consumer.take = () => {};
    publish('queue', { pages: 0 });
    ended.abort();
    await reconciling;
  }
}
