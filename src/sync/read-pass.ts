import type { Clock } from '@catchword/base/clock';
import { CatchwordError, fromErrorRecord, hasCode } from '@catchword/base/errors';
import { repeat } from '@catchword/base/lifecycle';
import type { Logger } from '@catchword/base/log';
import { publish } from '@catchword/base/telemetry';
import type { CapturedPage, FetchOutcome } from '@catchword/catalog/page-types';
import type { PageQueue } from '@catchword/queue/queue-port';
import { startOf } from '../proof/plan.ts';
import { diskOf } from '../store/file/open-mirror-file.ts';
import type { Pass } from '../store/rows/runs.ts';
import type { Reader } from '../store/schema/reader.ts';
import type { Applied, Applier } from './apply-page.ts';
import { watchProgress } from './check-progress.ts';
import { mayPass } from './failed-window.ts';
import { ofPiece, type Resize, resizeFor } from './page-size.ts';
import { createPassWindows, type PassWindows } from './pass-windows.ts';
import type { RunSettings } from './run-settings.ts';

/** How often unanswered tasks are added to the queue again, in case it lost them; milliseconds. */
const RECONCILE_MS = 5_000;
/** How long a page may wait in the applier's batch; milliseconds. */
const BATCH_AGE_MS = 10_000;
const MB = 1e6;

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

type OnRead = (captured: CapturedPage, windowsKnown: number) => void;

/** The error of a run that was told to stop, or that another process has taken over. */
export function interruption({ reason }: AbortSignal): CatchwordError {
  if (hasCode(reason, 'LEASE_LOST')) return reason;
  return new CatchwordError('INTERRUPTED', 'interrupted; the run resumes at the next start', {
    hint: 'Pages that were read are kept.',
  });
}

/**
 * Checks before pages are requested that the disk of the mirror has room for them, because other programs may suffer
 * more from a full disk than a mirror from a late run. Takes microseconds.
 * @throws CatchwordError MIRROR_DISK_LOW; the run can be resumed
 */
function requireSpace(path: string, minFreeBytes: number | null): void {
  if (minFreeBytes === null) return;
  const { free } = diskOf(path);
  if (free >= minFreeBytes) return;
  const what = `the disk of ${path} has ${Math.floor(free / MB)} MB free, and CATCHWORD_MIN_FREE asks for ${minFreeBytes / MB} MB`;
  const hint =
    'Free space, or move CATCHWORD_DB; the run goes on from where it is. npx catchword doctor says what VACUUM would free.';
  throw new CatchwordError('MIRROR_DISK_LOW', what, { hint });
}

/** Takes outcomes: applies a page, or decides what its error means. @param note marks pages as read that were applied */
function createOutcomeTaker(
  pass: Pass,
  windows: PassWindows,
  { store, applier, log }: PassContext,
  note: (applied: readonly Applied[]) => void,
  onRead: OnRead,
) {
  function take(captured: CapturedPage): void {
    windows.arrive(captured);
    onRead(captured, windows.size);
    note(applier.take(captured));
    // After the end by the total, each page is compared with the one before it before another is requested.
    if (startOf(captured.task.window) >= captured.page.envelope.numItems) note(applier.flush());
  }

  function fail({ task, error }: FetchOutcome & { kind: 'failed' }): void {
    const failed = fromErrorRecord(error);
    const isLookup = pass.kind === 'lookup' && error.code !== 'INTERRUPTED';
    if (isLookup || (pass.kind === 'repair' && mayPass(failed, true))) windows.giveUp(task.window);
    else if (!windows.fail(task.window, failed)) throw failed;
    const what = isLookup ? 'a product could not be looked up' : 'a page could not be read';
    log.warn({ vbid: task.vbid, code: error.code, reason: error.message }, what);
  }

  /** @returns another page size if the source does not answer pages of this one. @throws the error that ends the pass */
  return (outcome: FetchOutcome): Resize | null => {
    const { task } = outcome;
    if (task.mirror !== store.incarnation || task.runId !== pass.runId || task.pass !== pass.pass) return null;
    const error = outcome.kind === 'captured' ? null : fromErrorRecord(outcome.error);
    if (windows.takeProbe(task, error) || windows.isAnswered(task.window)) return null;
    const used = windows.isPiece(task.window) ? ofPiece(outcome) : outcome;
    const size = resizeFor(pass, used, pass.pass === 0 && !windows.isBegun());
    if (size !== null) return windows.isPending(task.window) ? size : null;
    if (used.kind === 'failed') fail(used);
    // Otherwise the window belongs to a plan that was replaced.
    else if (windows.isPlanned(task.window)) take(used);
    return null;
  };
}

/**
 * Reads a pass: repeatedly adds the missing windows to the queue and applies the pages that come back. Which windows
 * are missing is known from SQLite, so a start, a resume and a queue that lost its tasks are all handled the same way.
 * @returns null when nothing is left to read; another page size if the source answers pages of another size than
 *   requested, or not that many products in one page
 */
export async function readPass(pass: Pass, context: PassContext, onRead: OnRead): Promise<Resize | null> {
  const { store, queue, clock, applier, settings, signal, consumer } = context;
  const windows = createPassWindows(store, pass, settings);
  const checkProgress = watchProgress(store, pass, windows);
  let wake = (): void => {};
  let isReconcileDue = false;
  let failure: unknown;
  let resized: Resize | null = null;

  function end(error: unknown): void {
    failure ??= error;
    wake();
  }

  function note(applied: readonly Applied[]): void {
    for (const checkpoint of applied) {
      windows.noteApplied(checkpoint);
      checkProgress(checkpoint);
    }
    wake();
  }

  const takeOutcome = createOutcomeTaker(pass, windows, context, note, onRead);

  /** Takes an outcome of the queue. Never throws: errors end the pass. */
  function handle(outcome: FetchOutcome): void {
    if (failure !== undefined) return;
    try {
      resized ??= takeOutcome(outcome);
      wake();
    } catch (error) {
      end(error);
    }
  }

  async function loop(): Promise<void> {
    for (;;) {
      if (resized !== null) note(applier.flush());
      if (failure !== undefined) throw failure;
      if (resized !== null) return;
      const tasks = windows.request();
      const pending = windows.pending();
      publish({ of: 'queue', pages: pending.length });
      if (pending.length === 0) {
        if (!windows.hasArrived()) {
          const found = windows.decide();
          if (found === null) return;
          note(found.map((one) => applier.noteUnreadable(pass.pass, one)));
          continue;
        }
        // Pages in the batch may show that the list continues.
        note(applier.flush());
        // Pages that were not applied now had been applied before: they were delivered twice.
        if (windows.hasArrived()) windows.noteCheckpoints();
        continue;
      }
      const woken = new Promise<void>((resolve) => {
        wake = resolve;
      });
      const toAdd = isReconcileDue ? pending : tasks;
      isReconcileDue = false;
      if (toAdd.length > 0) {
        requireSpace(store.path, settings.minFreeBytes);
        await queue.add(toAdd);
      }
      await woken;
    }
  }

  const onAbort = (): void => end(interruption(signal));
  if (signal.aborted) onAbort();
  windows.noteCheckpoints();
  signal.addEventListener('abort', onAbort, { once: true });
  consumer.take = handle;
  function reconcile(): void {
    isReconcileDue = true;
    try {
      note(applier.flush(BATCH_AGE_MS));
    } catch (error) {
      end(error);
    }
  }
  const reconciling = repeat({ name: 'reconcile', clock, everyMs: RECONCILE_MS, turn: reconcile });
  try {
    await loop();
    return resized;
  } finally {
    signal.removeEventListener('abort', onAbort);
    consumer.take = () => {};
    publish({ of: 'queue', pages: 0 });
    await reconciling.stop();
  }
}
