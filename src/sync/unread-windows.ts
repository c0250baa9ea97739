import { CatchwordError, type ErrorCode } from '../base/errors.ts';
import { type Window, windowKey } from '../catalog/page-types.ts';
import { endOf, holdsEnd, startOf, type WindowRead, windowsOver } from '../proof/plan.ts';
import type { Pass } from '../store/rows/runs.ts';

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
/** Unreadable products in a row, with nothing readable after them, that show the end of what the source shows. */
const LAST_IN_A_ROW = 3;
/** A source with more of them, or with more windows that fail, has another trouble than single products. */
const UNREADABLE_MOST = 20;
const FAILED_MOST = 400;
/** A narrower window is only an attempt, and so is a repair; a single product is not given up so soon. */
const ATTEMPTS = { narrowed: 2, single: 3 } as const;
export const PROBE_ATTEMPTS = 2;

const CODES = new Set<ErrorCode>(['SOURCE_UNAVAILABLE', 'SOURCE_TIMEOUT', 'SOURCE_BODY', 'PAGE_INVALID']);
const KINDS = new Set<Pass['kind']>(['list', 'delta', 'catchup', 'settle']);

/** Whether other windows may be readable. @param isAnswered whether the source has answered another request of the run */
export function mayPass({ code, status = 0 }: CatchwordError, isAnswered: boolean): boolean {
  if (!CODES.has(code) || status === 401 || status === 403) return false;
  return isAnswered || status >= 500 || code === 'SOURCE_BODY' || code === 'SOURCE_TIMEOUT';
}

/** Not for the key, nor because of too many requests: these do not depend on the window. */
const OF_ALL = [401, 403, 429];

/** A page after the end of the list is refused by some sources; others answer it empty. */
function isRefused({ status = 0 }: CatchwordError): boolean {
  return status >= 400 && status < 500 && !OF_ALL.includes(status);
}

/** Windows of half the size over a window that failed. */
function halves(window: Window, seam: number): Window[] {
  const perPage = Math.ceil(window.perPage / 2);
  return windowsOver(startOf(window), endOf(window), { perPage, seam: Math.min(seam, window.perPage >> 2) });
}

function tooMany(unreadable: number, failures: number): string | null {
  if (unreadable > UNREADABLE_MOST) return `${UNREADABLE_MOST} offsets cannot be read`;
  return failures > FAILED_MOST ? `${FAILED_MOST} windows could not be read` : null;
}

interface Failed {
  readonly window: Window;
  readonly error: CatchwordError;
  /** The source answers no narrower window. */
  readonly isLeast: boolean;
}

function requireFew(
  [unreadable, failures]: [number, number],
  { status, hint }: CatchwordError,
  first?: CatchwordError,
): void {
  const what = tooMany(unreadable, failures);
  if (what === null) return;
  const message = `more than ${what}; the first error was: ${first?.message}`;
  throw new CatchwordError('PAGE_INVALID', message, { retryable: false, status, hint });
}

/** What becomes of windows that failed. */
export interface Decision {
  readonly unreadable: readonly Unreadable[];
  /** Windows of the plan that count as read, because narrower ones take their place. */
  readonly narrowed: readonly Window[];
  /** Windows after the end of the list. */
  readonly ended: readonly Window[];
  readonly numItems: number;
}

/** If each window across the end by the total is refused, the source may have more, and not count it either. */
function hiddenAfter(numItems: number, refused: Failed | undefined): Decision | null {
  if (refused === undefined) return null;
  const window = { page: numItems + 1, perPage: 1 };
  const doubt = doubtOf(window, refused.error, AND_ALL_AFTER);
  return { unreadable: [{ window, doubt, numItems }], narrowed: [], ended: [], numItems };
}

/**
 * The windows of a pass that the source did not answer after all attempts. One product may make every page that holds it
 * fail, or the source may not show the list beyond some offset: then all the rest is still read. When nothing else is left
 * to read, the lowest window that failed is decided about:
 *
 * ```
 * failed ─► narrowed: read in windows of half the size ─► … ─► unreadable: a window of one product
 *    │                                    the third in a row, with nothing readable after it ─► and everything after it
 *    ├─ refused, and after the end by the total ─► the end of the list
 *    └─ several in a row, and the source does not answer a probe ─► the pass fails
 * ```
 */
export function createUnreadWindows({ kind, from, seam, perPage: size, sizeIgnored }: Pass) {
  const failed = new Map<string, Failed>();
  const settled = new Set<string>();
  const pieces = new Map<string, Window>();
  /** The highest offset at which a window was read, and that window. */
  let readUpTo = -1;
  let lastRead: Window | undefined;
  let total: number | undefined;
  let [inRow, failures] = [0, 0];
  let isProbed = false;
  /** Whether a window came back short, as the last one of a list does. */
  let isEndShown = false;
  /** A narrower window that was refused, after the end by the total. */
  let beyond: Failed | undefined;
  let count = 0;
  /** Unreadable windows in a row with nothing readable after them. */
  let last: Failed[] = [];
  let first: CatchwordError | undefined;

  /** @returns what cannot be read because of this window, and drops all after it if that cannot be read either */
  function giveUp(one: Failed, numItems: number): Unreadable[] {
    const { window, error } = one;
    count++;
    requireFew([count, failures], error, first);
    last = startOf(window) > readUpTo ? [...last, one] : [];
    const [least = one] = last;
    if (last.length < LAST_IN_A_ROW) return [{ window, doubt: doubtOf(window, error), numItems }];
    // A full run needs no control of its deltas, which may not reach back so far.
    if (readUpTo < 0 && kind !== 'catchup') throw first ?? error;
    for (const key of failed.keys()) settled.add(key);
    failed.clear();
    return [{ window, doubt: doubtOf(least.window, least.error, AND_ALL_AFTER), numItems }];
  }

  const ofPlan = (window: Window): boolean => !pieces.has(windowKey(window));

  return {
    /** @returns whether the rest of the pass is still read */
    fail: (window: Window, error: CatchwordError, isAnswered: boolean): boolean => {
      const key = windowKey(window);
      // Nothing may have been answered when narrower windows are read, and those after the end be refused.
      const isNarrowed = pieces.size > 0;
      const isPassing = mayPass(error, isAnswered || isNarrowed) || (isNarrowed && isRefused(error));
      if (!KINDS.has(kind) || !isPassing) return false;
      first ??= error;
      // A part of a window that was answered in another size: see page-size.ts.
      const isOtherSize = error.code === 'PAGE_INVALID' && !error.retryable;
      failed.set(key, { window, error, isLeast: isOtherSize || sizeIgnored || window.perPage === 1 });
      inRow++;
      failures++;
      return true;
    },
    succeeded: (window: Parameters<typeof holdsEnd>[0] & Pick<WindowRead, 'numItems'>): void => {
      isEndShown ||= holdsEnd(window);
      if (startOf(window) >= readUpTo) lastRead = { page: window.page, perPage: window.perPage };
      readUpTo = Math.max(readUpTo, startOf(window));
      total = window.numItems;
      failed.delete(windowKey(window));
      inRow = 0;
    },
    /** Whether no answer for the window is needed now. */
    skips: (key: string): boolean => failed.has(key) || settled.has(key),
    /** Whether enough have failed to decide about them before more is requested. */
    isFull: (): boolean => failed.size >= IN_A_ROW,
    isPiece: (window: Window): boolean => pieces.has(windowKey(window)),
    pieces: (): Window[] => [...pieces.values()],
    /** Maximum attempts of a window that is probably not answered; undefined for others. */
    attempts: (window: Window): number | undefined => {
      if (pieces.has(windowKey(window))) return window.perPage === 1 ? ATTEMPTS.single : ATTEMPTS.narrowed;
      const isAfterEnd = total !== undefined && startOf(window) >= total;
      return isAfterEnd || kind === 'repair' ? ATTEMPTS.single : undefined;
    },
    /** Whether it is in question that the source answers at all. */
    isDoubtful: (): boolean => inRow >= (lastRead === undefined && !isProbed ? 1 : IN_A_ROW),
    /** What to ask for then: a window that was read, or one of the list, not at its head, where what failed may be, too. */
    probe: () =>
      lastRead === undefined ? { window: { page: 2, perPage: size }, from: null } : { window: lastRead, from },
    /**
     * @param error null if the probe was answered
     * @throws the error of the first window that failed, if the source does not answer
     */
    noteProbe: (error: CatchwordError | null): void => {
      // The list may have one page.
      const isAnswer = error === null || (lastRead === undefined && isRefused(error));
      if (!isAnswer) throw first ?? error;
      isProbed = true;
      inRow = 0;
    },
    /**
     * Decides about windows that failed. Call it when nothing else is left to read.
     * @returns null if none has failed
     * @throws CatchwordError if there are too many of them
     */
    decide: (): Decision | null => {
      const numItems = total ?? 0;
      if (failed.size === 0) {
        const hidden = isEndShown || count > 0 ? null : hiddenAfter(numItems, beyond);
        beyond = undefined;
        return hidden;
      }
      const all = [...failed.values()].sort((a, b) => startOf(a.window) - startOf(b.window));
      const isAfterEnd = ({ window, error }: Failed) =>
        total !== undefined && startOf(window) >= total && isRefused(error);
      beyond ??= all.find((one) => isAfterEnd(one) && !ofPlan(one.window));
      const after = all.filter(isAfterEnd).map(({ window }) => window);
      const [lowest] = all.filter((one) => !isAfterEnd(one));
      for (const window of [...after, ...(lowest === undefined ? [] : [lowest.window])]) {
        failed.delete(windowKey(window));
        settled.add(windowKey(window));
      }
      const decided = { unreadable: [], narrowed: [], ended: after.filter(ofPlan), numItems };
      if (lowest === undefined) return decided;
      if (lowest.isLeast) return { ...decided, unreadable: giveUp(lowest, numItems) };
      requireFew([count, failures], lowest.error, first);
      const narrowed = [lowest.window].filter(ofPlan);
      for (const piece of halves(lowest.window, seam)) pieces.set(windowKey(piece), piece);
      return { ...decided, narrowed };
    },
  };
}
