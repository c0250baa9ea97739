import type { CatchwordError, ErrorCode, ErrorRecord } from '@catchword/base/errors';
import type { FetchTask, Window } from '@catchword/catalog/page-types';
import type { Doubt } from '@catchword/catalog/reasons';
import { isPassing } from 'catchword-client/errors/service-error';
import { endOf, startOf, windowsOver } from '../proof/plan.ts';

/** A window that the source does not answer, whatever is tried. */
export interface Unreadable {
  readonly window: Window;
  readonly doubt: Doubt;
  /** The source's total in the newest answer. */
  readonly numItems: number;
}

/** Whether a page after the window was not read either. */
export function endsReading(doubt: Doubt | null): boolean {
  return doubt?.code === 'unreadable' && doubt.to === null;
}

/** Whether a source that answers lists refused a delta from its first page on. */
export function refusesDelta({ page, doubt }: Pick<Window, 'page'> & { readonly doubt: Doubt | null }): boolean {
  return page === 1 && endsReading(doubt);
}

/** @param isLast whether nothing after the window can be read either */
export function unreadableDoubt(window: Window, { message }: CatchwordError, isLast = false): Doubt {
  return { code: 'unreadable', from: startOf(window), to: isLast ? null : endOf(window) - 1, said: message };
}

/** Errors of a window that another window of the same pass may not have, even if nothing was answered before. */
const OF_WINDOW = new Set<ErrorCode>(['SOURCE_TIMEOUT', 'SOURCE_BODY', 'PAGE_BROKEN']);
const CODES = new Set<ErrorCode>([...OF_WINDOW, 'SOURCE_UNAVAILABLE', 'PAGE_INVALID']);

/** Whether other windows may be readable. @param isAnswered whether the source has answered another request of the run */
export function mayPass({ code, status = 0 }: CatchwordError, isAnswered: boolean): boolean {
  if (!CODES.has(code) || status === 401 || status === 403) return false;
  return isAnswered || status >= 500 || OF_WINDOW.has(code);
}

/** Not for the key, nor because of too many requests: these do not depend on the window. */
const OF_ALL = [401, 403, 429];

/** A page after the end of the list is refused by some sources, and so is every delta; others answer it empty. */
export function isRefused({ status = 0 }: Pick<ErrorRecord, 'status'>): boolean {
  return status >= 400 && !isPassing(status) && !OF_ALL.includes(status);
}

/**
 * Whether a first page is refused because of the time from which it asks: a list was read with pages of its size, and with
 * the same key.
 */
export function isRefusedDelta(
  { from, window }: Pick<FetchTask, 'from' | 'window'>,
  { status = 0 }: Pick<ErrorRecord, 'status'>,
): boolean {
  return from !== null && window.page === 1 && status !== 429 && !isPassing(status);
}

export function halves(window: Window, seam: number): Window[] {
  const perPage = Math.ceil(window.perPage / 2);
  return windowsOver(startOf(window), endOf(window), { perPage, seam: Math.min(seam, window.perPage >> 2) });
}

export interface Failed {
  readonly window: Window;
  readonly error: CatchwordError;
  /** The source answers no narrower window. */
  readonly isLeast: boolean;
}
