import { type FetchOutcome, type FetchTask, requestOf } from '../catalog/page.ts';
import { CatchwordError, type ErrorRecord } from '../errors.ts';
import type { Pass } from '../store/runs.ts';

/** The page size of the rest of a pass. */
export interface Resize {
  readonly perPage: number;
  /** Whether the source answers pages of that size whatever is requested; else it does not answer larger ones. */
  readonly isFixed: boolean;
}

/** Smallest sizes that are tried if the source refuses the first request, or does not answer it in time. */
const SMALLEST = { refused: 25, slow: 250 } as const;

/** Half the size of the first request, if a smaller page may be answered. */
function smallerSize({ window }: FetchTask, { code, status = 0 }: ErrorRecord): Resize | null {
  const isRefused = [400, 413, 414, 422].includes(status);
  if (!isRefused && status !== 504 && code !== 'SOURCE_TIMEOUT' && code !== 'SOURCE_BODY') return null;
  const perPage = window.perPage >> 1;
  return perPage >= (isRefused ? SMALLEST.refused : SMALLEST.slow) ? { perPage, isFixed: false } : null;
}

/**
 * Another page size for the pass, if an outcome calls for it.
 * @param isFirst whether the source has not answered a request of the run yet
 * @throws CatchwordError PAGE_INVALID if the source answered with another size before
 */
export function resizeFor({ sizeIgnored }: Pass, outcome: FetchOutcome, isFirst: boolean): Resize | null {
  if (outcome.kind === 'failed') return isFirst ? smallerSize(outcome.task, outcome.error) : null;
  const { task, page } = outcome.captured;
  const { perPage } = page.envelope;
  if (perPage === task.window.perPage) return null;
  // Its pages are valid, but they are not the planned windows.
  if (!sizeIgnored && perPage > 0) return { perPage, isFixed: true };
  throw new CatchwordError(
    'PAGE_INVALID',
    `requested ${task.window.perPage} products a page, got ${perPage} (${requestOf(task)})`,
    {
      retryable: false,
      hint: 'The source changes its page size between requests: set CATCHWORD_PER_PAGE to a size that it keeps.',
    },
  );
}
