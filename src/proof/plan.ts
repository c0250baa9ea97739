import { type Envelope, type Page, type PageResponse, type Window, windowKey } from '@catchword/catalog/page-types';

/**
 * Plans which windows of a list to read.
 *
 * `page=k, per_page=s` reads the offsets (k-1)s … ks-1, so a window starts at a multiple of its size. The size varies:
 * each window shares at least `seam` products with the one before and reaches as far as possible. No plan with that
 * overlap has fewer windows, because a window that reaches further never makes the next one reach less far. For windows
 * of up to 1,000 that share 10, this needs 5.0 to 5.4% more requests than plain pages (from 200,000 products on).
 */

/** A window that was read. */
export interface WindowRead
  extends Window,
    Pick<Envelope, 'numItems'>,
    Pick<Page, 'doubt'>,
    Pick<PageResponse, 'requestedAt'> {
  /** Items of the response, rejected ones included. */
  readonly items: number;
}

/** How to cut a list. `perPage`: the largest window, 1 to 1000. `seam`: products that neighbours share; 0: plain pages. */
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
 * The window that starts at least `seam` products before `reach` and reaches furthest beyond it. If no size up to
 * `perPage` allows that (possible if `perPage` is less than 50), the overlap is reduced, at last to 0.
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

/** Yields the windows of a list, starting at `reach`, without end. */
export function* windowsFrom(layout: Layout, reach = 0): Generator<Window, never> {
  let window = reach === 0 ? { page: 1, perPage: layout.perPage } : nextWindow(reach, layout);
  for (; ; window = nextWindow(endOf(window), layout)) yield window;
}

/** The windows that cover the offsets `low` to `high`, overlapping by at least the layout's seam. */
export function windowsOver(low: number, high: number, layout: Layout): Window[] {
  const windows: Window[] = [];
  for (const window of windowsFrom(layout, Math.max(0, low) + (low > 0 ? layout.seam : 0))) {
    windows.push(window);
    if (endOf(window) >= high) return windows;
  }
  return windows;
}

type Held = Pick<WindowRead, 'page' | 'perPage' | 'items' | 'doubt'>;

/** Whether the window holds the end of the list, so that nothing after it needs to be read. An empty one shows no end. */
export function holdsEnd({ perPage, items, doubt }: Held): boolean {
  return doubt === null && items < perPage && items > 0;
}

/** Whether one response held the whole list, which may be empty. @param windows of one pass */
export function isWhole([only, ...others]: readonly Held[]): boolean {
  return only?.page === 1 && others.length === 0 && only.doubt === null && only.items < only.perPage;
}

/** The windows of a pass, and which of them were read. */
export interface PassPlan {
  note(read: WindowRead): void;
  /** At most `limit` windows that were not read and are not `taken`, in the order to request them. */
  missing(limit: number, taken: (key: string) => boolean): Window[];
  /** Whether the window is in the plan, read or not. */
  has(window: Window): boolean;
  before(window: Window): Window | undefined;
  /** Windows planned so far, including those that were read. */
  readonly size: number;
}

/** Creates a plan of windows that are known in advance. */
export function createFixedPlan(windows: readonly Window[]): PassPlan {
  const planned = new Set(windows.map(windowKey));
  const read = new Set<string>();
  return {
    size: windows.length,
    before: () => undefined,
    has: (window) => planned.has(windowKey(window)),
    note: (window) => void read.add(windowKey(window)),
    missing: (limit, taken) =>
      windows.filter((window) => !read.has(windowKey(window)) && !taken(windowKey(window))).slice(0, limit),
  };
}

interface ListPlanOptions extends Layout {
  /** Whether to read from the end of the list to its start. */
  readonly reversed: boolean;
  /** The list's size; null: unknown until the first window is read. */
  readonly numItems: number | null;
  /** The list's length as an earlier pass found it. A reversed pass starts there, even if the totals are higher. */
  readonly foundLength?: number | undefined;
}

/** Maximum windows planned beyond those that were read. Limits memory if a source reports an absurd total. */
const HORIZON = 50_000;

/**
 * Creates a plan that covers a list: only the first window while the size is unknown, then as many windows as the
 * newest total requires, and another one as long as the last one is full.
 */
export function createListPlan(options: ListPlanOptions) {
  const { reversed } = options;
  const sequence = windowsFrom(options);
  const windows: Window[] = [];
  const index = new Map<string, number>();
  const read = new Map<number, WindowRead>();
  let newest = { total: plannedLength(options.numItems ?? -1), at: Number.NEGATIVE_INFINITY };
  /** Index of the first window known to hold the end, or to be after it. */
  let last = Number.POSITIVE_INFINITY;
  let unread = 0;

  function windowAt(at: number): Window {
    while (windows.length <= at) {
      const window = sequence.next().value;
      index.set(windowKey(window), windows.length);
      windows.push(window);
    }
    return windows[at] as Window;
  }

  function plannedLength(numItems: number): number {
    return Math.min(numItems, reversed ? (options.foundLength ?? numItems) : numItems);
  }

  /** The last window must end after the list's end by its total, which may be too low: it has to come back short. */
  function reachesEnd(window: Window): boolean {
    return endOf(window) > newest.total;
  }

  /** Number of windows that the pass needs, as known so far. */
  function size(): number {
    if (Number.isFinite(last)) return last + 1;
    let at = Math.max(0, windows.length - 1);
    while (at > 0 && reachesEnd(windowAt(at - 1))) at--;
    // The list goes on after a window that was read and did not hold the end.
    const most = read.size + HORIZON;
    while (read.has(at) || (at < most && !reachesEnd(windowAt(at)))) at++;
    return at + 1;
  }

  /** Undefined for a window of another plan. It may come from an earlier process that had planned further. */
  function indexOf(window: Window): number | undefined {
    for (let at = windows.length; !index.has(windowKey(window)); at++) {
      if (startOf(windowAt(at)) > startOf(window)) return undefined;
    }
    return index.get(windowKey(window));
  }

  const plan: PassPlan = {
    get size() {
      return size();
    },
    has: (window) => indexOf(window) !== undefined,
    before: (window) => windows[(indexOf(window) ?? 0) - 1],
    note: (window) => {
      // Also the total of a window that is not in the plan, such as a part of one that cannot be read.
      if (window.requestedAt >= newest.at) {
        newest = { total: plannedLength(window.numItems), at: window.requestedAt };
      }
      const at = indexOf(window);
      if (at === undefined) return;
      read.set(at, window);
      if (holdsEnd(window) || window.items === 0) last = Math.min(last, at);
    },
    missing: (limit, taken) => {
      const count = size();
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
  return Object.assign(plan, { windowAt, indexOf });
}
