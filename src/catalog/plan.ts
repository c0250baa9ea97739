import { type Window, windowKey } from './page.ts';

/**
 * Which windows of a list are to be read.
 *
 * `page=k, per_page=s` is the offsets (k-1)s … ks-1, so a window begins where its size divides its offset. Letting the
 * size vary, each window is chosen to share at least `seam` products with the one before it and to reach as far as it
 * can. No plan with that overlap has fewer windows: whatever reaches further lets the next one reach at least as far.
 * For windows of up to 1,000 that share 10 it is 5.0 to 5.4% more than plain pages from 200,000 products on.
 */

/** What a window that was read told about the list, as far as planning needs it. */
export interface WindowRead extends Window {
  /** Items of the response, rejected ones included. */
  readonly items: number;
  readonly numItems: number;
  readonly totalPages: number;
  /** Start of the request, milliseconds since 1970. */
  readonly requestedAt: number;
  /** Why the response's own totals contradict what it held; null where they agree. */
  readonly doubt: string | null;
}

/** How a list is cut. `perPage`: the largest window, 1 to 1000. `seam`: products that neighbours share; 0: plain pages. */
export interface Layout {
  readonly perPage: number;
  readonly seam: number;
}

export function startOf({ page, perPage }: Window): number {
  return (page - 1) * perPage;
}

export function endOf({ page, perPage }: Window): number {
  return page * perPage;
}

/**
 * The window that begins at `seam` products before `reach`, or earlier, and reaches furthest beyond it. Where the sizes
 * up to `perPage` allow for none (they may where `perPage` is less than 50), the overlap is smaller; at last it is 0.
 */
export function nextWindow(reach: number, { perPage, seam }: Layout): Window {
  for (let overlap = Math.min(seam, perPage - 1); overlap > 0; overlap >>= 1) {
    const from = reach - overlap;
    let best: Window | undefined;
    let end = reach;
    for (let size = perPage; size > overlap && from + size > end; size--) {
      const page = Math.floor(from / size) + 1;
      if (page * size <= end) continue;
      end = page * size;
      best = { page, perPage: size };
    }
    if (best !== undefined) return best;
  }
  return { page: Math.floor(reach / perPage) + 1, perPage };
}

/** The windows of a list from its head on, without end. */
export function* windowsFrom(layout: Layout, reach = 0): Generator<Window, never> {
  for (let end = reach; ; ) {
    const window = end === 0 ? { page: 1, perPage: layout.perPage } : nextWindow(end, layout);
    yield window;
    end = endOf(window);
  }
}

/** The windows that cover the offsets `low` to `high`, sharing at least the layout's seam. */
export function windowsOver(low: number, high: number, layout: Layout): Window[] {
  const windows: Window[] = [];
  for (const window of windowsFrom(layout, Math.max(0, low) + (low > 0 ? layout.seam : 0))) {
    windows.push(window);
    if (endOf(window) >= high) return windows;
  }
  return windows;
}

/** Whether the response held the end of the list, so that nothing need be read behind it. */
export function holdsEnd({ page, perPage, items, doubt }: Omit<WindowRead, 'requestedAt' | 'numItems' | 'totalPages'>) {
  return doubt === null && items < perPage && (items > 0 || page === 1);
}

/** What is still to be read of a pass. */
export interface PassPlan {
  note(read: WindowRead): void;
  /** At most `limit` windows that are not read and that `taken` does not name, in the order they should be asked for. */
  missing(limit: number, taken: (key: string) => boolean): Window[];
  /** Whether the window is one of the plan's, read or not. */
  has(window: Window): boolean;
  /** The window that stands before it in the list. */
  before(window: Window): Window | undefined;
  /** Windows known so far, those that were read included. */
  readonly size: number;
}

/** A plan of windows that are known beforehand. */
export function createFixedPlan(windows: readonly Window[]): PassPlan {
  const read = new Set<string>();
  return {
    size: windows.length,
    before: () => undefined,
    has: (window) => windows.some((planned) => windowKey(planned) === windowKey(window)),
    note: (window) => {
      read.add(windowKey(window));
    },
    missing: (limit, taken) =>
      windows.filter((window) => !read.has(windowKey(window)) && !taken(windowKey(window))).slice(0, limit),
  };
}

export interface ListPlanOptions extends Layout {
  /** From the end of the list to its head. */
  readonly reversed: boolean;
  /** The list's size, as far as it is known; null: the first window tells. */
  readonly numItems: number | null;
  /** Offsets that an earlier reading found products at; a reading from the end begins there, whatever totals say. */
  readonly held?: number | undefined;
}

/**
 * Windows that are planned beyond those that were read, at most. For safety: a source that says that it has more products
 * than there are books costs no more memory than this; a list that is longer is planned as it is read.
 */
const HORIZON = 50_000;

/**
 * A plan that covers a list: its first window alone while the size is unknown; then what the newest total asks for; and
 * one window more for as long as the last one was full. Totals are hints: the list changes while it is read.
 */
export function createListPlan(options: ListPlanOptions): PassPlan {
  const { perPage, seam, reversed } = options;
  const source = seam > 0 ? windowsFrom({ perPage, seam }) : plainPages(perPage);
  const windows: Window[] = [];
  const index = new Map<string, number>();
  const read = new Map<number, WindowRead>();
  let total = believed(options.numItems ?? -1);
  let totalAt = Number.NEGATIVE_INFINITY;
  /** Index of the first window that is known to hold the end, or to lie behind it. */
  let last = Number.POSITIVE_INFINITY;
  let unread = 0;

  function believed(numItems: number): number {
    return Math.min(numItems, reversed ? (options.held ?? numItems) : numItems);
  }

  function windowAt(at: number): Window {
    while (windows.length <= at) {
      const window = source.next().value;
      index.set(windowKey(window), windows.length);
      windows.push(window);
    }
    return windows[at] as Window;
  }

  /** A joined window must end behind the list's end, so that it comes back short; a plain page may end with it. */
  function reachesEnd(window: Window): boolean {
    return seam > 0 ? endOf(window) > total : endOf(window) >= total;
  }

  function plainEnd(window: WindowRead): boolean {
    return seam === 0 && window.totalPages === window.page && window.numItems === endOf(window);
  }

  /** Number of windows that the pass needs, as far as is known. */
  function size(): number {
    if (Number.isFinite(last)) return last + 1;
    let at = Math.max(0, windows.length - 1);
    while (at > 0 && reachesEnd(windowAt(at - 1))) at--;
    // One that was read and did not hold the end: the list goes on.
    const most = read.size + HORIZON;
    while (read.has(at) || (at < most && !reachesEnd(windowAt(at)))) at++;
    return at + 1;
  }

  /** Where the window stands in the list's sequence; it may be known from an earlier process, which saw more. */
  function indexOf(window: Window): number | undefined {
    for (let at = windows.length; !index.has(windowKey(window)); at++) {
      if (startOf(windowAt(at)) > startOf(window)) return undefined;
    }
    return index.get(windowKey(window));
  }

  let known: number | undefined;
  function knownSize(): number {
    known ??= size();
    return known;
  }

  return {
    get size() {
      return knownSize();
    },
    has: (window) => indexOf(window) !== undefined,
    before: (window) => windows[(indexOf(window) ?? 0) - 1],
    note: (window) => {
      const at = indexOf(window);
      if (at === undefined) return;
      read.set(at, window);
      known = undefined;
      if (window.requestedAt >= totalAt) {
        totalAt = window.requestedAt;
        total = believed(window.numItems);
      }
      if (holdsEnd(window) || window.items === 0 || plainEnd(window)) last = Math.min(last, at);
    },
    missing: (limit, taken) => {
      const count = knownSize();
      const found: Window[] = [];
      while (read.has(unread)) unread++;
      for (let step = 0; step < count - unread && found.length < limit; step++) {
        const at = reversed ? count - 1 - step : unread + step;
        const window = windowAt(at);
        if (!read.has(at) && !taken(windowKey(window))) found.push(window);
      }
      return found;
    },
  };
}

function* plainPages(perPage: number): Generator<Window, never> {
  for (let page = 1; ; page++) yield { page, perPage };
}
