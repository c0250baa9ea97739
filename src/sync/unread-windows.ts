import { type Window, windowKey } from '../catalog/page.ts';
import { endOf, startOf, windowsOver } from '../catalog/plan.ts';
import type { CatchwordError, ErrorCode } from '../errors.ts';
import type { Pass } from '../store/runs.ts';

/** Follows the offset in the doubt about a window that the source does not answer. */
const CANNOT = 'cannot be read: ';
const AND_ALL_AFTER = 'and everything after it ';

/** A window that the source does not answer, whatever is tried. */
export interface Unreadable {
  readonly window: Window;
  readonly doubt: string;
  /** The source's total in the newest answer. */
  readonly numItems: number;
}

export function isUnreadable(doubt: string | null): boolean {
  return doubt?.includes(CANNOT) === true;
}

/** Whether a page after the window was not read either. */
export function endsReading(doubt: string | null): boolean {
  return doubt?.includes(AND_ALL_AFTER + CANNOT) === true;
}

function doubtOf(window: Window, { message }: CatchwordError, more = ''): string {
  const start = startOf(window);
  const offsets = window.perPage === 1 || more !== '' ? `offset ${start}` : `offsets ${start} to ${endOf(window) - 1}`;
  return `${offsets} ${more}${CANNOT}${message}`;
}

/** Failures in a row after which it is asked whether the source answers at all. */
const IN_A_ROW = 3;
/** A source with more of them has another trouble than single products. */
const UNREADABLE_MOST = 20;
/** A narrower window is only an attempt; a single product is not given up so soon. */
const ATTEMPTS = { narrowed: 2, single: 3 } as const;
export const PROBE_ATTEMPTS = 2;

const CODES = new Set<ErrorCode>(['SOURCE_UNAVAILABLE', 'SOURCE_TIMEOUT', 'SOURCE_BODY', 'PAGE_INVALID']);
const KINDS = new Set<Pass['kind']>(['list', 'delta', 'catchup', 'settle']);

/** Whether narrower windows may be readable. @param isAnswered whether the source has answered another request of the run */
function mayNarrow({ code, status = 0 }: CatchwordError, isAnswered: boolean): boolean {
  if (!CODES.has(code) || status === 401 || status === 403) return false;
  return isAnswered || status >= 500 || code === 'SOURCE_BODY' || code === 'SOURCE_TIMEOUT';
}

/**
 * The windows of a pass that the source did not answer after all attempts. One product may make every page that holds it
 * fail, or the source may not show the list beyond some offset: then all the rest is still read.
 *
 * ```
 * failed ─ everything else was read ─► narrowed: windows of half the size ─► … ─► unreadable: a window of one product
 *    ├─ no window after it was read, but the source answers a probe ─► unreadable, and everything after it
 *    └─ several in a row, and the source does not answer a probe ─► the pass fails
 * ```
 */
export function createUnreadWindows({ kind, seam, sizeIgnored }: Pass) {
  const failed = new Map<string, { readonly window: Window; readonly error: CatchwordError }>();
  const narrowed = new Set<string>();
  const pieces = new Map<string, Window>();
  /** The highest offset at which a window was read; -1 if none. */
  let readUpTo = -1;
  let total: number | undefined;
  let inRow = 0;
  let isProbed = false;
  let count = 0;
  let first: CatchwordError | undefined;

  function narrow(window: Window): void {
    narrowed.add(windowKey(window));
    const perPage = Math.ceil(window.perPage / 2);
    const layout = { perPage, seam: Math.min(seam, window.perPage >> 3) };
    for (const piece of windowsOver(startOf(window), endOf(window), layout)) pieces.set(windowKey(piece), piece);
  }

  return {
    /** @returns whether the rest of the pass is still read */
    fail: (window: Window, error: CatchwordError, isAnswered: boolean): boolean => {
      if (!KINDS.has(kind) || !mayNarrow(error, isAnswered)) return false;
      first ??= error;
      failed.set(windowKey(window), { window, error });
      inRow++;
      return true;
    },
    succeeded: (window: Window & Pick<Unreadable, 'numItems'>): void => {
      readUpTo = Math.max(readUpTo, startOf(window));
      total = window.numItems;
      failed.delete(windowKey(window));
      inRow = 0;
    },
    /** Whether no answer for the window is needed now. */
    skips: (key: string): boolean => failed.has(key) || narrowed.has(key),
    /** Whether enough have failed to decide about them before more is requested. */
    isFull: (): boolean => failed.size >= IN_A_ROW,
    isPiece: (window: Window): boolean => pieces.has(windowKey(window)),
    pieces: (): Window[] => [...pieces.values()],
    /** Maximum attempts of a window that is probably not answered; undefined for others. */
    attempts: (window: Window): number | undefined => {
      if (pieces.has(windowKey(window))) return window.perPage === 1 ? ATTEMPTS.single : ATTEMPTS.narrowed;
      // Some sources refuse a page after the end of the list.
      return total !== undefined && startOf(window) >= total ? ATTEMPTS.single : undefined;
    },
    /** Whether it is in question that the source answers at all. */
    isDoubtful: (): boolean => inRow >= IN_A_ROW,
    /** What to ask for then: a part of the list that was read. */
    probe: (): Window => ({ page: 1 + (Math.max(0, readUpTo) >> 1), perPage: 2 }),
    /** @throws the error of the first window that failed, if the source does not answer */
    noteProbe: (isAnswered: boolean): void => {
      if (!isAnswered) throw first ?? new Error('no window has failed');
      inRow = 0;
      isProbed = true;
    },
    /**
     * Decides about the windows that failed. Call it when nothing else is left to read.
     * @returns those that are unreadable; null if none has failed
     * @throws CatchwordError if there are too many of them
     */
    decide: (): Unreadable[] | null => {
      if (failed.size === 0) return null;
      const all = [...failed.values()].sort((a, b) => startOf(a.window) - startOf(b.window));
      const [lowest] = all;
      failed.clear();
      if (lowest === undefined) return null;
      const isWhole = all.every(({ window }) => !pieces.has(windowKey(window)));
      const start = startOf(lowest.window);
      const numItems = total ?? 0;
      const isAnswered = start >= numItems || (isProbed && all.length >= IN_A_ROW);
      if (isWhole && start > readUpTo && readUpTo >= 0 && isAnswered) {
        return [{ window: lowest.window, doubt: doubtOf(lowest.window, lowest.error, AND_ALL_AFTER), numItems }];
      }
      const isLeast = ({ perPage }: Window): boolean => perPage === 1 || sizeIgnored;
      const singles = all.filter(({ window }) => isLeast(window));
      count += singles.length;
      if (count > UNREADABLE_MOST) {
        const message = `more than ${UNREADABLE_MOST} offsets cannot be read; the first error was: ${first?.message}`;
        throw lowest.error.with({ message });
      }
      for (const { window } of all) if (!isLeast(window)) narrow(window);
      return singles.map(({ window, error }) => ({ window, doubt: doubtOf(window, error), numItems }));
    },
  };
}
