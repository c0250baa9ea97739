import { CatchwordError } from '@catchword/base/errors';
import { type Window, windowKey } from '@catchword/catalog/page-types';
import { type PassPlan, startOf } from '../proof/plan.ts';
import type { Pass } from '../store/rows/runs.ts';
import {
  type Failed,
  halves,
  isRefused,
  isRefusedDelta,
  mayPass,
  type Unreadable,
  unreadableDoubt,
} from './failed-window.ts';
import { IN_A_ROW, type SourceAnswers, type WindowAnswer } from './source-answers.ts';

/** Unreadable products in a row, with nothing readable after them, that show the end of what the source shows. */
const LAST_IN_A_ROW = 3;
/** A narrower window is only an attempt, and so is a repair; a single product is not given up so soon. */
const ATTEMPTS = { narrowed: 2, single: 3 } as const;
/** A source with more of them, or with more windows that fail, has another trouble than single products. */
const UNREADABLE_MOST = 20;
const FAILED_MOST = 400;
const KINDS = new Set<Pass['kind']>(['list', 'delta', 'catchup', 'settle']);

/**
 * The windows of a pass that the source did not answer after all attempts. One product may make every page that holds it
 * fail, or the source may not show the list beyond some offset: then all the rest is still read. When nothing else is left
 * to read, the lowest window that failed is decided about:
 *
 * ```
 * failed ─► narrowed: read in windows of half the size ─► … ─► unreadable: a window of one product
 *    │                                    the third in a row, with nothing readable after it ─► and everything after it
 *    ├─ refused, and after the end by the total ─► the end of the list
 *    ├─ the first of a delta that follows a list: refused, or each narrower one failed, too ─► and everything after it
 *    └─ several in a row, and the source does not answer a probe ─► the pass fails
 * ```
 */
export function createUnreadWindows(
  { pass, from, kind, seam, sizeIgnored }: Pass,
  answers: SourceAnswers,
  plan: PassPlan,
) {
  const failed = new Map<string, Failed>();
  const settled = new Set<string>();
  const pieces = new Map<string, Window>();
  let unreadable = 0;
  let failures = 0;
  /** A narrower window that was refused, after the end by the total. */
  let beyond: Failed | undefined;
  /** Unreadable windows in a row with nothing readable after them. */
  let last: Failed[] = [];

  /** @throws CatchwordError PAGE_INVALID if more than a few products, or windows, cannot be read */
  function requireFew({ status, hint }: CatchwordError): void {
    if (unreadable <= UNREADABLE_MOST && failures <= FAILED_MOST) return;
    const isOffsets = unreadable > UNREADABLE_MOST;
    const what = isOffsets ? `${UNREADABLE_MOST} offsets cannot be read` : `${FAILED_MOST} windows could not be read`;
    const message = `more than ${what}; the first error was: ${answers.firstError()?.message}`;
    throw new CatchwordError('PAGE_INVALID', message, { retryable: false, status, hint });
  }

  /** @returns what cannot be read because of this window, and drops all after it if that cannot be read either */
  function giveUp(one: Failed, numItems: number): Unreadable[] {
    const { window, error } = one;
    unreadable++;
    requireFew(error);
    last = answers.isBehind(window) ? [...last, one] : [];
    const [least = one] = last;
    // The list was answered before and meanwhile: trouble at each time from which deltas ask is a refusal of deltas.
    const isDeltaRefused = isNothingRead() && pass > 0 && from !== null;
    if (last.length < LAST_IN_A_ROW && !isDeltaRefused)
      return [{ window, doubt: unreadableDoubt(window, error), numItems }];
    if (isNothingRead() && !isDeltaRefused) throw answers.firstError() ?? error;
    for (const key of failed.keys()) settled.add(key);
    failed.clear();
    return [{ window, doubt: unreadableDoubt(least.window, least.error, true), numItems }];
  }

  const isNothingRead = (): boolean => answers.extent().last === undefined;
  const ofPlan = (window: Window): boolean => !pieces.has(windowKey(window));
  const isRefusedAfterEnd = ({ window, error }: Failed): boolean => answers.isAfterEnd(window) && isRefused(error);

  /** @param items that the plan counts as read: none after the end, all if narrower windows take its place; null: not read */
  function settle(window: Window, items: number | null, numItems: number): void {
    failed.delete(windowKey(window));
    settled.add(windowKey(window));
    if (items === null || !ofPlan(window)) return;
    plan.note({ ...window, numItems, requestedAt: Number.NEGATIVE_INFINITY, doubt: null, items });
  }

  return {
    /** @returns whether the rest of the pass is still read */
    fail: (window: Window, error: CatchwordError, isAnswered: boolean): boolean => {
      // Nothing may have been answered when narrower windows are read, and those after the end be refused.
      const isNarrowed = pieces.size > 0;
      const isOfDelta = error.code === 'SOURCE_UNAVAILABLE' && isRefusedDelta({ from, window }, error);
      const isPassing = isOfDelta || mayPass(error, isAnswered || isNarrowed) || (isNarrowed && isRefused(error));
      if (!KINDS.has(kind) || !isPassing) return false;
      // A part of a window that was answered in another size: see page-size.ts.
      const isOtherSize = error.code === 'PAGE_INVALID' && !error.retryable;
      failed.set(windowKey(window), { window, error, isLeast: isOtherSize || sizeIgnored || window.perPage === 1 });
      answers.failed(error);
      failures++;
      return true;
    },
    succeeded: (window: WindowAnswer): void => {
      answers.succeeded(window);
      failed.delete(windowKey(window));
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
      return answers.isAfterEnd(window) || kind === 'repair' ? ATTEMPTS.single : undefined;
    },
    /** Decides about failed windows when nothing else is left to read. @returns null if none failed. @throws for too many */
    decide: (): readonly Unreadable[] | null => {
      const { total: numItems = 0, isEndShown } = answers.extent();
      if (failed.size === 0) {
        const refused = isEndShown || unreadable > 0 ? undefined : beyond;
        beyond = undefined;
        if (refused === undefined) return null;
        // Each window across the end by the total is refused: the source may have more, and not count it either.
        const window = { page: numItems + 1, perPage: 1 };
        return [{ window, doubt: unreadableDoubt(window, refused.error, true), numItems }];
      }
      const all = [...failed.values()].sort((a, b) => startOf(a.window) - startOf(b.window));
      beyond ??= all.find((one) => isRefusedAfterEnd(one) && !ofPlan(one.window));
      const lowest = all.find((one) => !isRefusedAfterEnd(one));
      for (const { window } of all.filter(isRefusedAfterEnd)) settle(window, 0, numItems);
      if (lowest === undefined) return [];
      const { window, error, isLeast } = lowest;
      const isGivenUp = isLeast || (isNothingRead() && isRefusedDelta({ from, window }, error) && ofPlan(window));
      settle(window, isGivenUp ? null : window.perPage, numItems);
      if (isGivenUp) return giveUp(lowest, numItems);
      requireFew(error);
      for (const piece of halves(window, seam)) pieces.set(windowKey(piece), piece);
      return [];
    },
  };
}
