import { fromErrorRecord } from '../base/errors.ts';
import type { Logger } from '../base/log.ts';
import type { CapturedPage, FetchOutcome } from '../catalog/page-types.ts';
import { startOf } from '../proof/plan.ts';
import type { Pass } from '../store/rows/runs.ts';
import type { Reader } from '../store/schema/reader.ts';
import type { Applied, Applier } from './apply-page.ts';
import { mayPass } from './failed-window.ts';
import { ofPiece, type Resize, resizeFor } from './page-size.ts';
import type { PassWindows } from './pass-windows.ts';

interface OutcomeTakerOptions {
  readonly store: Reader;
  readonly applier: Applier;
  readonly log: Logger;
  /** Marks pages as read that were applied. */
  readonly note: (applied: readonly Applied[]) => void;
  /** Called for each window that was read. */
  readonly onRead: (captured: CapturedPage, windowsKnown: number) => void;
}

/** Takes the outcomes of a pass: applies a page, or decides what its error means. */
export function createOutcomeTaker(
  pass: Pass,
  windows: PassWindows,
  { store, applier, log, note, onRead }: OutcomeTakerOptions,
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

  /**
   * @returns another page size if the source does not answer pages of this one; otherwise null
   * @throws the error that ends the pass
   */
  return (outcome: FetchOutcome): Resize | null => {
    const task = outcome.kind === 'captured' ? outcome.captured.task : outcome.task;
    if (task.mirror !== store.incarnation || task.runId !== pass.runId || task.pass !== pass.pass) return null;
    const error = outcome.kind === 'captured' ? null : fromErrorRecord(outcome.error);
    if (windows.takeProbe(task, error) || windows.isAnswered(task.window)) return null;
    const used = windows.isPiece(task.window) ? ofPiece(outcome) : outcome;
    const size = resizeFor(pass, used, pass.pass === 0 && !windows.isBegun());
    if (size !== null) return windows.isPending(task.window) ? size : null;
    if (used.kind === 'failed') fail(used);
    // Otherwise the window belongs to a plan that was replaced.
    else if (windows.isPlanned(task.window)) take(used.captured);
    return null;
  };
}
