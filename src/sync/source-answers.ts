import type { CatchwordError } from '@catchword/base/errors';
import type { Window } from '@catchword/catalog/page-types';
import { isPassing } from 'catchword-client/errors/service-error';
import { holdsEnd, startOf, type WindowRead } from '../proof/plan.ts';
import type { Pass } from '../store/rows/runs.ts';
import { isRefused } from './failed-window.ts';

/** Failures in a row after which it is asked whether the source answers at all. */
export const IN_A_ROW = 3;
export const PROBE_ATTEMPTS = 2;

export type WindowAnswer = Parameters<typeof holdsEnd>[0] & Pick<WindowRead, 'numItems'>;

interface Extent {
  /** The highest offset at which a window was read, and that window; undefined if none was read. */
  readonly last: Window | undefined;
  /** The source's total in the newest answer. */
  readonly total: number | undefined;
  /** Whether a window came back short, as the last one of a list does. */
  readonly isEndShown: boolean;
}

/** How far the source has answered a pass, and whether it still answers at all. */
export function createSourceAnswers({ from, perPage }: Pick<Pass, 'from' | 'perPage'>) {
  let extent: Extent = { last: undefined, total: undefined, isEndShown: false };
  let failuresInRow = 0;
  let isProbed = false;
  let first: CatchwordError | undefined;
  const isFirstRefused = (): boolean => !isPassing(first?.status ?? 0);

  return {
    extent: () => extent,
    firstError: () => first,
    /** Whether the window is behind everything that was read. */
    isBehind: (window: Window): boolean => extent.last === undefined || startOf(window) > startOf(extent.last),
    /** Whether the window is after the end by the total. */
    isAfterEnd: (window: Window): boolean => extent.total !== undefined && startOf(window) >= extent.total,
    succeeded: (window: WindowAnswer): void => {
      const isFarther = extent.last === undefined || startOf(window) >= startOf(extent.last);
      const last = isFarther ? { page: window.page, perPage: window.perPage } : extent.last;
      extent = { last, total: window.numItems, isEndShown: extent.isEndShown || holdsEnd(window) };
      failuresInRow = 0;
    },
    failed: (error: CatchwordError): void => {
      first ??= error;
      failuresInRow++;
    },
    /** Whether it is in question that the source answers at all. */
    isDoubtful: (): boolean => failuresInRow >= (extent.last === undefined && !isProbed ? 1 : IN_A_ROW),
    /** What to ask for then: a window that was read; or one of the list, whose head may hold what broke the first window. */
    probe: () => {
      if (extent.last !== undefined) return { window: extent.last, from };
      // Of another size than the first window: two tasks of a pass are told apart by their windows.
      return {
        window: isFirstRefused() ? { page: 1, perPage: Math.ceil(perPage / 2) } : { page: 2, perPage },
        from: null,
      };
    },
    /** @param error null if it was answered. @throws the error of the first window that failed, if it was not */
    noteProbe: (error: CatchwordError | null): void => {
      // The list may have one page.
      const isAnswer = error === null || (extent.last === undefined && !isFirstRefused() && isRefused(error));
      if (!isAnswer) throw (first ?? error).with({ retryable: error.retryable });
      isProbed = true;
      failuresInRow = 0;
    },
  };
}

export type SourceAnswers = ReturnType<typeof createSourceAnswers>;
