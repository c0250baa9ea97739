import { createIdSet } from '@catchword/catalog/id-set';
import { type Window, windowKey } from '@catchword/catalog/page-types';
import { isUnreadable } from '@catchword/catalog/reasons';
import { endOf, isWhole, startOf, windowsOver } from '../proof/plan.ts';
import { examineSeams } from '../proof/seams.ts';
import { type Clocks, clockPutForward } from '../proof/watermark.ts';
import type { Pass } from '../store/rows/runs.ts';
import type { Reader } from '../store/schema/reader.ts';
import type { Applied } from './apply-page.ts';
import { examinePlaces } from './listed-twice.ts';
import { countProducts, countUnknown, newestTotal, repeatsIn } from './product-count.ts';

/** Windows to repair the gaps of a list, over all rounds, as a share of its own: more would amount to reading it again. */
const REPAIRS = 0.1;
const REPAIRS_LEAST = 20;
/** Half the width of the first repair of a gap, as a share of the largest window. Each further one is twice as wide. */
const REPAIR_REACH = 0.4;

/** Whether the pass shows what was modified while the run read. */
export function isDelta({ kind }: Pick<Pass, 'kind'>): boolean {
  return kind === 'delta' || kind === 'settle';
}

/** Whether one of these later deltas tells everything that this delta tells. */
export function isRetold({ from }: Pick<Pass, 'from'>, later: readonly { pass: Pick<Pass, 'from'> }[]): boolean {
  return from !== null && later.some(({ pass }) => pass.from !== null && pass.from <= from);
}

/** Examines the seams of a list. Two windows show a product alike if both show the same content, also what is ignored. */
function examine(store: Reader, input: Omit<Parameters<typeof examineSeams<Applied>>[0], 'isAlike' | 'highest'>) {
  const { products, runs } = store;
  let recent: (readonly [Applied, ReadonlyMap<number, number>])[] = [];

  function shownIn(window: Applied): ReadonlyMap<number, number> {
    const found = recent.find(([one]) => one === window)?.[1] ?? runs.shownIn(window.runId, window.pass, window);
    if (recent.at(-1)?.[0] !== window) recent = [...recent.slice(-1), [window, found]];
    return found;
  }

  const isAlike = (id: number, a: Applied, b: Applied) =>
    products.changedSeq(id) <= Math.min(a.seq, b.seq) && shownIn(a).get(id) === shownIn(b).get(id);
  return examineSeams({ ...input, highest: products.lastId(), isAlike });
}

/**
 * Whether what a pass read cannot have changed meanwhile: one response held it, or it is a delta that stood still. Then
 * the pass needs no delta of its own. A settling delta decides about removals, so one response must hold it.
 */
export function isClosed(store: Reader, { runId, pass, kind, seam }: Pass): boolean {
  if (kind === 'repair' || kind === 'lookup') return false;
  const windows = store.runs.checkpoints(runId, pass);
  if (isWhole(windows)) return true;
  if (kind === 'list' || kind === 'settle' || seam === 0) return false;
  const idsOf = (window: Applied) => store.runs.idsOf(runId, pass, window);
  return examine(store, { windows, root: pass, idsOf, modifiedIn: () => -1 }).stoodStill;
}

/** What a run has read so far, and how complete it is. @param before assess only passes before this one */
export function assessRun(store: Reader, runId: number, before = Number.POSITIVE_INFINITY) {
  const passes = store.runs.passes(runId).filter(({ pass }) => pass < before);
  const reads = new Map(passes.map(({ pass }) => [pass, store.runs.checkpoints(runId, pass)]));
  const highest = store.products.lastId();
  const seen = createIdSet(highest);
  const listed = createIdSet(highest);
  const catalog = passes.findLast(({ kind }) => kind === 'list')?.pass;
  /** Of a full run; a delta run's pass of this kind shows what was modified. */
  const control = catalog === undefined ? undefined : passes.find(({ kind }) => kind === 'catchup');
  /** The last pass that showed a product as modified, and the last such pass of another delta; plus one. */
  const modified = new Uint8Array(highest + 1);
  const elsewhere = new Uint8Array(highest + 1);

  function idsOf(window: Applied): number[] {
    const ids = store.runs.idsOf(runId, window.pass, window);
    // A control also shows what was withdrawn long before.
    if (window.pass !== control?.pass) seen.addAll(ids);
    if (passes[window.pass]?.root === catalog) listed.addAll(ids);
    return ids;
  }

  /** The list that a pass belongs to; -1: none. @param next the pass, plus one; 0: none */
  const rootOf = (next = 0): number => passes[next - 1]?.root ?? -1;

  function assessList(root: Pass) {
    const repairs = passes.filter((pass) => pass.kind === 'repair' && pass.root === root.pass);
    const windows = [root, ...repairs].flatMap(({ pass }) => reads.get(pass) ?? []);
    const exact = isWhole(reads.get(root.pass) ?? []);
    // What a delta shows itself does not count: its own products may join its windows.
    const modifiedIn = (id: number): number =>
      ((rootOf(modified[id]) === root.pass ? elsewhere[id] : modified[id]) ?? 0) - 1;
    const seams = exact || root.seam === 0 ? null : examine(store, { windows, root: root.pass, idsOf, modifiedIn });
    const places = examinePlaces(store, windows, root.pass, (id) => modifiedIn(id) > root.pass);
    const plain = seams === null ? windows.map(idsOf) : [];
    const still = plain.map((ids) => ids.filter((id) => modifiedIn(id) <= root.pass));
    const unmodified = createIdSet(highest);
    for (const ids of still) unmodified.addAll(ids);
    const most = windows.reduce((total, { numItems }) => Math.max(total, numItems), 0);
    return {
      pass: root,
      /** Windows of the first reading and of all repairs. */
      windows,
      total: newestTotal(windows),
      rejected: windows.reduce((sum, { rejected }) => sum + rejected, 0),
      /** Items that were withdrawn before the mirror knew them. */
      unknown: () => countUnknown(reads.get(root.pass) ?? [], idsOf),
      exact,
      /** Null for an exact list, and for one of plain pages. */
      seams,
      /** Products that it shows at two places with two contents. */
      places,
      /** Items that show a product for a second time: in one answer, or where `places` has proven it. */
      repeated: (seams?.repeated ?? repeatsIn(plain)) + places.more,
      /** Where the list ended, by what it answered. */
      end: windows.reduce((most, window) => Math.max(most, startOf(window) + window.items), 0),
      /**
       * No product can be missing: its seams are joined, or its plain pages hold as many unmodified products as the list
       * had, which were in it when its first page was read, because only a modified product enters a list.
       */
      complete: seams?.sealed ?? (exact || unmodified.size + repeatsIn(still) >= most),
      repairs: repairs.length,
    };
  }

  function mark(roots: readonly Pass[]): void {
    // A repair of a delta shows what was modified, too.
    for (const { pass, root } of passes.filter((one) => roots.some((delta) => delta.pass === one.root))) {
      for (const id of (reads.get(pass) ?? []).flatMap(idsOf)) {
        const last = modified[id] ?? 0;
        if (rootOf(last) !== root) elsewhere[id] = Math.max(elsewhere[id] ?? 0, Math.min(last, pass + 1));
        modified[id] = Math.max(last, pass + 1);
      }
    }
  }

  /**
   * A control also tells what was modified before the run. So it counts when a settling delta was read after it, for
   * products that were not read since: one that lives then was modified before, if that delta does not tell of it.
   */
  function markControl(): void {
    const settled = passes.find(({ kind, pass }) => kind === 'settle' && pass > (control?.pass ?? pass));
    if (control === undefined || settled === undefined) return;
    mark([control]);
    const later = passes.filter(({ kind, pass }) => pass > settled.pass && !isDelta({ kind }));
    for (const { pass } of later)
      for (const window of reads.get(pass) ?? []) for (const id of idsOf(window)) modified[id] = elsewhere[id] = 0;
  }

  markControl();
  mark(passes.filter((pass) => isDelta(pass) || (pass.kind === 'catchup' && pass !== control)));
  for (const { kind, pass } of passes) if (kind === 'lookup') reads.get(pass)?.forEach(idsOf);
  const read = passes.filter(({ kind }) => kind !== 'repair' && kind !== 'lookup').map(assessList);
  const lists = read.filter(({ pass }) => pass !== control);
  const newest = lists.filter(({ pass }, at) => !isRetold(pass, lists.slice(at + 1)));
  return {
    /** In the order in which they were read, without the control. */
    lists,
    /** The same without each delta that a later one tells again. */
    newest,
    /** The delta that controls what the others tell; undefined if the run has none. */
    control: read.find(({ pass }) => pass === control),
    /** The newest reading of the whole list; none in a delta run. */
    list: lists.findLast(({ pass }) => pass.kind === 'list'),
    /** Products in any window, delta or lookup of the run. */
    seen,
    /** Products in the newest reading of the whole list. */
    listed,
    /** How many of the products that were seen the source's total should count. */
    counted: () => countProducts(store, newest, listed, (id) => rootOf(modified[id])),
    /** The last pass. */
    last: passes.at(-1),
  };
}

export type Assessment = ReturnType<typeof assessRun>;
/** A list that the run read: the catalog, or a delta. */
export type ReadList = Assessment['lists'][number];

/** The source's clock and this machine's at the start of a pass; none if they are not known. */
export function clockOf(store: Reader, { runId, pass, sourceTime }: Pass): Clocks[] {
  const local = store.runs.passStart(runId, pass);
  return sourceTime === null || local === null ? [] : [{ source: sourceTime, local }];
}

/** The same of each pass. */
export function passClocks(store: Reader, runId: number): Clocks[] {
  return store.runs.passes(runId).flatMap((pass) => clockOf(store, pass));
}

/** As `clockPutForward`, since the overlap before the run began: a run that began meanwhile may have seen the new time. */
export function steadyAt(store: Reader, runId: number, now: Clocks, overlapMs: number): number | null {
  const [first = now] = passClocks(store, runId);
  const before = store.clockBefore(runId, first.local - overlapMs) ?? store.clockSeen() ?? first;
  return clockPutForward([before, first], now, overlapMs);
}

/**
 * Windows over the gaps of a list, wider than in the previous round; where it has none, over places that may be of one
 * product. Empty if there would be too many gaps.
 */
export function repairsOf({ pass, windows, total, seams, repairs, places }: ReadList): Window[] {
  const { perPage, seam } = pass;
  if (seams === null || seams.disorder > 0 || windows.some(({ doubt }) => isUnreadable(doubt))) return [];
  const own = windows.filter((window) => window.pass === pass.pass);
  // If many pages are shorter than their totals say, repairs would be too.
  if (own.filter(({ doubt }) => doubt !== null).length > REPAIRS * own.length) return [];
  const reach = REPAIR_REACH * perPage * 2 ** repairs;
  const layout = { perPage, seam: Math.min(seam * 2 ** (repairs + 1), perPage >> 2) };
  const found = new Map<string, Window>();
  // The source's total may be wrong, but the end of the list is not far behind what was read.
  const end = Math.min(total, windows.reduce((most, window) => Math.max(most, endOf(window)), 0) + perPage);
  for (const { offset, shift } of seams.gaps) {
    const centre = (offset ?? end) - (offset === null ? 0 : shift);
    const low = Math.floor(centre - reach);
    // A window that reaches beyond the end comes back short, which shows that it holds the end.
    const high = offset === null ? centre + 1 : Math.ceil(centre + reach);
    for (const window of windowsOver(low, high, layout)) found.set(windowKey(window), window);
  }
  // Without a limit: each window is read again once, and otherwise the whole list would be.
  if (found.size === 0) return places.again;
  const most = Math.max(REPAIRS_LEAST, REPAIRS * own.length);
  const repaired = new Set(windows.map(windowKey)).size - own.length;
  return repaired + found.size > most ? [] : [...found.values()];
}
