import type { CapturedPage } from '@catchword/catalog/page-types';
import type { Run } from '@catchword/catalog/run-types';
import { startOf } from '../../src/proof/plan.ts';
import { momentOf, sourceTimeOf } from '../../src/proof/watermark.ts';
import { decodeIds, decodeShown, encodeIds } from '../../src/store/rows/ids.ts';
import type { Checkpoint, Pass } from '../../src/store/rows/runs.ts';
import type { Reader } from '../../src/store/schema/reader.ts';
import { createAppliedReads } from '../../src/sync/applied-reads.ts';
import type { Applied } from '../../src/sync/apply-page.ts';
import { checkpointOf, draftPage } from '../../src/sync/plan-page-write.ts';
import type { RunSettings } from '../../src/sync/run-settings.ts';

/*
 * What the pure functions of a run read, kept in memory, because a mirror in a file takes ten times as long as what they
 * compute. It has only what they ask for; the adversary also meets the real store (adversary-keeper.ts).
 */

interface Row {
  readonly id: number;
  readonly vbid: string;
  body: string;
  changedSeq: number;
  removed: boolean;
}

const NO_COUNTS = { pages: 0, items: 0, created: 0, updated: 0, removed: 0, restored: 0, missing: 0, rejected: 0 };

function least(values: readonly number[], sign = 1): number | null {
  return values.length === 0 ? null : sign * Math.min(...values);
}

function newRun(id: number, startedAt: number): Run {
  const times = { from: null, sourceTime: null, startedAt, finishedAt: null, settlesAt: null };
  const open = { proof: null, reasons: [], error: null, emptied: null, unusual: null, evidence: null };
  return { ...NO_COUNTS, requests: 0, id, kind: 'full', state: 'reading', ...times, ...open };
}

export type MemoryMirror = ReturnType<typeof createMemoryMirror>;

export function createMemoryMirror(settings: RunSettings) {
  /** By id, from 1 on. */
  const rows: Row[] = [];
  const byKey = new Map<string, Row>();
  let seq = 0;
  let passes: Pass[] = [];
  let checkpoints = new Map<number, Checkpoint[]>();
  /** Local start of each pass, as `sourceTime` counts from it. */
  let starts: number[] = [];
  /** The newest change before the run. */
  let before = 0;
  let last: Pick<Run, 'id' | 'proof' | 'reasons'> | null = null;
  let readUpTo: number | null = null;

  function living(id: number): Row | undefined {
    const row = rows[id - 1];
    return row === undefined || row.removed ? undefined : row;
  }

  function ofPass(pass: number): Checkpoint[] {
    return checkpoints.get(pass) ?? [];
  }

  function idsIn(pass: number, page: number, perPage: number): readonly number[] {
    return ofPass(pass).find((one) => one.page === page && one.perPage === perPage)?.ids ?? [];
  }

  const store = {
    incarnation: 'memory',
    readUpTo: () => readUpTo,
    clockSeen: () => null,
    clockBefore: () => undefined,
    changes: {
      lastSeq: () => seq,
      beforeRun: () => before,
      productsAfter: (since: number) => rows.filter(({ changedSeq }) => changedSeq > since).map(({ id }) => id),
      ofProduct: () => [],
    },
    source: { noted: () => null },
    recentRuns: { read: () => (last === null ? [] : [last]) },
    products: {
      lastId: () => rows.length,
      changedSeq: (id: number) => rows[id - 1]?.changedSeq ?? 0,
      find: (vbid: string) => byKey.get(vbid),
      living: () => rows.filter(({ removed }) => !removed).length,
      livingPage: () => rows.filter(({ removed }) => !removed),
    },
    removals: {
      living,
      missingRuns: () => 0,
      unseen: (seen: { has: (id: number) => boolean }) =>
        rows.flatMap(({ id, removed }) => (removed || seen.has(id) ? [] : [id])),
    },
    runs: {
      get: () => last,
      passes: () => [...passes],
      checkpoints: (_run: number, pass: number) => ofPass(pass),
      idsOf: (_run: number, pass: number, { page, perPage }: Applied) =>
        decodeIds(encodeIds(idsIn(pass, page, perPage))),
      shownIn: (_run: number, pass: number, { page, perPage }: Applied) =>
        decodeShown(encodeIds(idsIn(pass, page, perPage))),
      passStart: (_run: number, pass: number) => least(ofPass(pass).map(({ requestedAt }) => requestedAt)),
      passEnd: (_run: number, pass: number) =>
        least(
          ofPass(pass).map(({ requestedAt }) => -requestedAt),
          -1,
        ),
      heldUpTo: (_run: number, before: number) =>
        passes
          .filter(({ kind, pass }) => kind === 'list' && pass < before)
          .flatMap(({ pass }) => ofPass(pass))
          .reduce((most, window) => (window.items === 0 ? most : Math.max(most, startOf(window) + window.items)), 0),
      // Every answer shows whole products.
      leftOut: () => new Set(),
      inPart: () => ({ items: 0, leftOut: [], shown: [] }),
      counts: () => ({ ...NO_COUNTS, requests: 0 }),
    },
  } as unknown as Reader;

  /** As the applier pins it: the first response decides, unless a later one shows an earlier time. */
  function pin({ task, page: { envelope }, response }: CapturedPage): void {
    const pass = passes[task.pass];
    if (pass === undefined) return;
    const moment = momentOf(response);
    const first = starts[task.pass];
    const sourceTime = sourceTimeOf(response) - (first === undefined ? 0 : Math.max(0, moment - first));
    if (first !== undefined && sourceTime >= (pass.sourceTime ?? 0)) return;
    passes[task.pass] = { ...pass, sourceTime, numItems: pass.numItems ?? envelope.numItems };
    starts[task.pass] = Math.min(first ?? moment, moment);
  }

  function remove(ids: Iterable<number>): void {
    for (const id of ids) {
      const row = living(id);
      if (row !== undefined) [row.removed, row.changedSeq] = [true, ++seq];
    }
  }

  /** Applies a page. @returns null if its window was applied before */
  function apply(captured: CapturedPage): Applied | null {
    const { page, ...about } = captured;
    const { page: number, perPage } = captured.task.window;
    const runId = captured.task.runId;
    if (ofPass(captured.task.pass).some((one) => one.page === number && one.perPage === perPage)) return null;
    const ids = Array.from({ length: page.items.count }, (): number | null => null);
    for (const { position } of page.rejected) ids[position] = 0;
    const waiting = {
      ...about,
      envelope: page.envelope,
      rejected: page.rejected,
      doubt: page.doubt,
      items: page.items,
      ids,
    };
    const context = { ...settings, store, runId, reads: createAppliedReads(store, runId), twice: new Set<string>() };
    const draft = draftPage(context, waiting, true);
    for (const { id, product } of draft.created.values()) {
      const row = { id, vbid: product.vbid, body: product.body, changedSeq: ++seq, removed: false };
      rows.push(row);
      byKey.set(product.vbid, row);
    }
    for (const { known, product } of draft.changed.values()) {
      Object.assign(rows[known.id - 1] ?? {}, { body: product.body, changedSeq: ++seq, removed: false });
    }
    remove(draft.withdrawn);
    pin(captured);
    const checkpoint = checkpointOf(context, waiting, draft);
    checkpoints.set(checkpoint.pass, [...ofPass(checkpoint.pass), checkpoint]);
    return checkpoint;
  }

  return {
    store,
    apply,
    remove,
    /** Begins a full run. */
    begin: (id: number, startedAt: number): Run => {
      [passes, checkpoints, starts, before] = [[], new Map(), [], seq];
      const { perPage, seam } = settings;
      const first = { runId: id, pass: 0, kind: 'list', root: 0, from: null, perPage, seam } as const;
      passes.push({ ...first, sourceTime: null, numItems: null, sizeIgnored: false, reversed: false });
      return newRun(id, startedAt);
    },
    addPass: (pass: Pass): void => void passes.push(pass),
    /** Notes what a run has proven. The next one controls its deltas if this one was sealed. */
    end: (run: Pick<Run, 'id' | 'proof' | 'reasons'>): void => {
      last = run;
      if (run.proof === 'sealed') readUpTo = passes[0]?.sourceTime ?? readUpTo;
    },
  };
}
