import { productOf } from '@catchword/catalog/product';
import type { Doubt } from '@catchword/catalog/reasons';
import type { Run } from '@catchword/catalog/run-types';
import type { Pass } from '../../src/store/rows/runs.ts';
import { writeUnder } from '../../src/store/schema/lease.ts';
import type { KeeperWriter } from '../../src/store/schema/writers.ts';
import type { Store } from '../../src/store/store.ts';
import { openedStore } from '../store/opened-store.ts';
import { SELECTION } from '../support/mirror.ts';

export const MINUTE = 60_000;
/** The source's clock, and this machine's, when every sketched run starts. */
export const START = 1_800_000_000_000;

/** A window that was read. Its ids are the ids 1, 2, … of products of the mirror. */
export interface WindowSketch {
  readonly ids: readonly number[];
  /** Default: page 1 of the pass's size. */
  readonly page?: number;
  readonly perPage?: number;
  /** The source's total; default: the number of ids. */
  readonly total?: number;
  readonly doubt?: Doubt;
  readonly rejected?: number;
  /** When it was requested, milliseconds after its pass. */
  readonly after?: number;
}

/** A pass that was read. Default: a list in windows of 10 that share 2 products. */
export interface PassSketch extends Partial<Omit<Pass, 'runId' | 'pass' | 'sourceTime'>> {
  readonly windows: readonly WindowSketch[];
  /** When it was read, milliseconds after the start of the run, by this machine's clock. */
  readonly at?: number;
  /** How far the source's clock is behind `at`. */
  readonly behind?: number;
}

export interface RunSketch {
  /** Living products of the mirror, with the ids 1, 2, … */
  readonly products: number;
  readonly passes: readonly PassSketch[];
  readonly kind?: Run['kind'];
  /** Products that the source announced as withdrawn. */
  readonly withdrawn?: readonly number[];
  /** The mirror's watermark, milliseconds before the start of the run; default: none. */
  readonly watermarkAgo?: number;
}

/** A delta that shows nothing. */
export const DELTA: PassSketch = { kind: 'delta', windows: [{ ids: [] }] };

/** `from`, `from + 1` … `to`. */
export function ids(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, at) => from + at);
}

function addProducts(writer: KeeperWriter, count: number, withdrawn: readonly number[]): void {
  const rows = ids(1, count).map((id) => {
    const fields = { vbid: `P${id}`, ...(withdrawn.includes(id) && { distributable: false }) };
    return { id, seq: id, product: productOf(fields.vbid, fields, JSON.stringify(fields)) };
  });
  writer.products.insert(rows, START);
  writer.changes.appendCreated(1, 1, count, 0, START);
  writer.products.addLiving(count);
}

function addPass({ runs }: KeeperWriter, runId: number, pass: number, sketch: PassSketch): void {
  const { windows, at = pass * MINUTE, behind = 0, ...rest } = sketch;
  const kind = rest.kind ?? 'list';
  runs.addPass({
    runId,
    pass,
    kind,
    root: pass,
    from: kind === 'list' ? null : START,
    sourceTime: START + at - behind,
    numItems: windows[0]?.total ?? windows[0]?.ids.length ?? null,
    perPage: 10,
    seam: 2,
    sizeIgnored: false,
    reversed: false,
    ...rest,
  });
  for (const window of windows) {
    runs.addCheckpoint({
      runId,
      pass,
      page: window.page ?? 1,
      perPage: window.perPage ?? rest.perPage ?? 10,
      numItems: window.total ?? window.ids.length,
      totalPages: 1,
      requestedAt: START + at + (window.after ?? 0),
      items: window.ids.length + (window.rejected ?? 0),
      created: 0,
      updated: 0,
      removed: 0,
      restored: 0,
      rejected: window.rejected ?? 0,
      requests: 1,
      doubt: window.doubt ?? null,
      seq: 1_000,
      ids: window.ids,
    });
  }
}

/** Writes a run that has read these passes into a mirror of its own. */
export function sketchRun({ products, passes, kind = 'full', withdrawn = [], watermarkAgo }: RunSketch): {
  store: Store;
  run: Run;
} {
  const store = openedStore();
  const runId = writeUnder(store.keeperLease, START, (writer) => {
    addProducts(writer, products, withdrawn);
    if (watermarkAgo !== undefined) writer.advanceWatermark(START - watermarkAgo, START - watermarkAgo);
    const id = writer.runs.create({
      kind,
      from: kind === 'full' ? null : START,
      startedAt: START,
      tick: null,
      selection: SELECTION,
    });
    for (const [pass, sketch] of passes.entries()) addPass(writer, id, pass, sketch);
    writer.runs.setReading({ id, source: START, local: START });
    return id;
  });
  const run = store.runs.get(runId);
  if (run === undefined) throw new Error('the sketched run vanished');
  return { store, run };
}
