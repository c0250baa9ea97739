import type { Window } from './page.ts';

/** What a window that was read told about the list, as far as planning needs it. */
export interface WindowRead extends Window {
  /** Items of the response, rejected ones included. */
  readonly items: number;
  readonly numItems: number;
  readonly totalPages: number;
  /** Start of the request, milliseconds since 1970. */
  readonly requestedAt: number;
}

/** Plain pages: windows of one size, side by side, that cover `numItems`. */
export function plainWindows(numItems: number, perPage: number): Window[] {
  const pages = Math.max(1, Math.ceil(numItems / perPage));
  return Array.from({ length: pages }, (_, index) => ({ page: index + 1, perPage }));
}

/** The total that the most recent request was told; it is a hint, as the list changes while it is read. */
export function newestTotal(read: Iterable<WindowRead>): number | null {
  let newest: WindowRead | undefined;
  for (const window of read) if (newest === undefined || window.requestedAt >= newest.requestedAt) newest = window;
  return newest?.numItems ?? null;
}

/** Whether the response held the end of the list: it is short, or its own totals say that nothing follows. */
function holdsEnd(window: WindowRead): boolean {
  const reach = window.page * window.perPage;
  return window.items < window.perPage || (window.totalPages === window.page && window.numItems === reach);
}

/**
 * The windows of a pass, as far as they are known after `read`: page 1 alone at first; then what the newest total asks
 * for; and one page more for as long as the last one is full and does not hold the end of the list.
 */
export function windowsOfPass(read: readonly WindowRead[], perPage: number): Window[] {
  const windows = plainWindows(newestTotal(read) ?? 0, perPage);
  const byPage = new Map(read.map((window) => [window.page, window]));
  for (;;) {
    const last = byPage.get(windows.length);
    if (last === undefined || holdsEnd(last)) return windows;
    windows.push({ page: windows.length + 1, perPage });
  }
}
