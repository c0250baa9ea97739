import { CatchwordError, type ErrorRecord, toErrorRecord } from '@catchword/base/errors';
import { type CapturedPage, type FetchOutcome, type FetchTask, requestOf } from '@catchword/catalog/page-types';
import type { Pass, PassKind } from '../store/rows/runs.ts';
import type { SourceReader } from '../store/rows/source-state.ts';
import { isRefusedDelta } from './failed-window.ts';

/** The page size of the rest of a pass. */
export interface Resize {
  readonly perPage: number;
  /** Whether the source answers pages of that size whatever is requested; else it does not answer larger ones. */
  readonly isFixed: boolean;
}

/** Smallest sizes that are tried if the source refuses the first request, or does not answer it in time. */
const SMALLEST = { refused: 25, slow: 250 } as const;

/**
 * The page size with which a run begins. A delta asks for no more than a list was read with: if it is refused, that is
 * not because of its size. @param asked CATCHWORD_PER_PAGE
 */
export function firstSize(asked: number, kind: PassKind, source: SourceReader, nowMs: number): number {
  const learned = source.learnedPage(nowMs);
  const size = learned?.asked === asked ? learned.perPage : asked;
  return kind === 'list' ? size : Math.min(size, source.listedSize() ?? size);
}

/** Half the size of the first request, if a smaller page may be answered. */
function smallerSize(task: FetchTask, error: ErrorRecord): Resize | null {
  if (isRefusedDelta(task, error)) return null;
  const { code, status = 0 } = error;
  const isRefused = [400, 413, 414, 422].includes(status);
  if (!isRefused && status !== 504 && code !== 'SOURCE_TIMEOUT' && code !== 'SOURCE_BODY') return null;
  const perPage = task.window.perPage >> 1;
  return perPage >= (isRefused ? SMALLEST.refused : SMALLEST.slow) ? { perPage, isFixed: false } : null;
}

function isOtherSize(outcome: FetchOutcome): outcome is FetchOutcome & CapturedPage {
  return outcome.kind === 'captured' && outcome.page.envelope.perPage !== outcome.task.window.perPage;
}

function otherSize({ task, page }: CapturedPage): CatchwordError {
  const what = `requested ${task.window.perPage} products a page, got ${page.envelope.perPage} (${requestOf(task)})`;
  const hint =
    'Set CATCHWORD_PER_PAGE to a size that the source keeps; or several servers answer, with different limits.';
  return new CatchwordError('PAGE_INVALID', what, { retryable: false, hint });
}

/** The outcome for a part of a window that failed. Other sizes were answered before, so the source has a smallest one. */
export function ofPiece(outcome: FetchOutcome): FetchOutcome {
  if (!isOtherSize(outcome)) return outcome;
  const { task, requests } = outcome;
  return { kind: 'failed', task, error: toErrorRecord(otherSize(outcome)), requests };
}

/**
 * Another page size for the pass, if an outcome calls for it.
 * @param isFirst whether the source has not answered a request of the run yet
 * @throws CatchwordError PAGE_INVALID if the source answered with another size before
 */
export function resizeFor({ sizeIgnored }: Pass, outcome: FetchOutcome, isFirst: boolean): Resize | null {
  if (outcome.kind === 'failed') return isFirst ? smallerSize(outcome.task, outcome.error) : null;
  if (!isOtherSize(outcome)) return null;
  const { perPage } = outcome.page.envelope;
  // Its pages are valid, but they are not the planned windows.
  if (!sizeIgnored && perPage > 0) return { perPage, isFixed: true };
  throw otherSize(outcome);
}
