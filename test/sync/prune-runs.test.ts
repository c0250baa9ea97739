import type { RunKind } from '@catchword/catalog/run-types';
import { execute, query } from '@catchword/testing/sqlite';
import { createVirtualClock } from '@catchword/testing/test-clocks';
import { expect, it, onTestFinished } from 'vitest';
import { type Harness, openHarness } from '../../src/contract/harness.ts';
import { writeUnder } from '../../src/store/schema/lease.ts';
import type { KeeperWriter } from '../../src/store/schema/writers.ts';
import { requireRun } from '../../src/sync/finish-run.ts';
import { createRunPruning } from '../../src/sync/prune-runs.ts';
import { SELECTION } from '../support/mirror.ts';

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const NOW = Date.parse('2026-11-20T10:00:00Z');
const COUNTS = {
  pages: 1,
  items: 2,
  created: 0,
  updated: 0,
  removed: 0,
  restored: 0,
  missing: 0,
  rejected: 3,
  requests: 4,
};

function open(): Harness {
  const bench = openHarness();
  onTestFinished(() => bench.close());
  return bench;
}

function write<T>({ store }: Harness, work: (writer: KeeperWriter) => T): T {
  return writeUnder(store.keeperLease, Date.now(), work);
}

interface Sketch {
  readonly count: number;
  readonly kind?: RunKind;
  readonly state?: 'complete' | 'held' | 'failed';
  /** Age of the oldest; each is an hour younger than the one before. */
  readonly ageMs: number;
}

/** Adds runs of three rejected items each. @returns their numbers */
function addRuns(bench: Harness, { count, kind = 'delta', state = 'complete', ageMs }: Sketch): number[] {
  return write(bench, ({ runs }) =>
    Array.from({ length: count }, (_, index) => {
      const startedAt = NOW - ageMs + index * HOUR_MS;
      const id = runs.create({ kind, from: null, startedAt, tick: null, selection: SELECTION });
      runs.addPass({
        runId: id,
        pass: 0,
        from: null,
        sourceTime: startedAt,
        numItems: 2,
        perPage: 10,
        kind: 'list',
        root: 0,
        seam: 0,
        sizeIgnored: false,
        reversed: false,
      });
      const items = [1, 2, 3].map((position) => ({ position, reason: 'no vbid', body: '{}' }));
      runs.addRejected(id, 0, { page: 1, perPage: 10 }, items);
      runs.end(id, { state, finishedAt: startedAt + 1000, counts: COUNTS, proof: null, reasons: [], error: null });
      return id;
    }),
  );
}

function idsIn(bench: Harness, table: string, column = 'run_id'): number[] {
  const rows = query<{ id: number }>(bench.store.path, `SELECT DISTINCT ${column} AS id FROM ${table} ORDER BY 1`);
  return rows.map(({ id }) => id);
}

/** The pruning of one process, which remembers. */
function pruningOf(bench: Harness) {
  const pruneRuns = createRunPruning(bench.store, createVirtualClock());
  return async (retentionMs = 90 * DAY_MS, ageMs = NOW): Promise<number> => {
    const leased = bench.store.keeperLease.acquire(Date.now());
    try {
      return await pruneRuns(leased, retentionMs, ageMs);
    } finally {
      leased.release();
    }
  };
}

it('pruning deletes old runs with all notes of them, and still counts them', async () => {
  const bench = open();
  const old = addRuns(bench, { count: 250, ageMs: 200 * DAY_MS });
  const recent = addRuns(bench, { count: 120, ageMs: 80 * DAY_MS });
  const before = bench.store.runs.totals();
  expect(before).toMatchObject({ pages: 370, items: 740, rejected: 1110, requests: 1480 });
  expect(await pruningOf(bench)()).toBe(250);
  expect(idsIn(bench, 'runs', 'id')).toEqual(recent);
  expect(idsIn(bench, 'passes')).toEqual(recent);
  expect(bench.store.runs.totals()).toEqual(before);
  expect(() => requireRun(bench.store, old[0] ?? 0)).toThrow('is not kept any more (CATCHWORD_RUN_RETENTION)');
  expect(() => requireRun(bench.store, 9999)).toThrow('run 9999 does not exist');
  // A second time adds to the sums of the first.
  addRuns(bench, { count: 120, ageMs: DAY_MS });
  const all = bench.store.runs.totals();
  expect(await pruningOf(bench)(70 * DAY_MS)).toBe(120);
  expect(bench.store.runs.totals()).toEqual(all);
});

it('pruning keeps the newest 100 of each kind, and the newest complete one', async () => {
  const bench = open();
  const [complete] = addRuns(bench, { count: 1, kind: 'full', ageMs: 900 * DAY_MS });
  addRuns(bench, { count: 150, kind: 'full', state: 'failed', ageMs: 800 * DAY_MS });
  addRuns(bench, { count: 300, ageMs: 400 * DAY_MS });
  expect(await pruningOf(bench)()).toBe(250);
  const left = idsIn(bench, 'runs', 'id');
  expect(left).toEqual([complete, ...range(52, 151), ...range(352, 451)]);
});

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}

it('pruning keeps runs that are held, unusual or unfinished, and runs that a decision or a kept change names', async () => {
  const bench = open();
  const [held = 0] = addRuns(bench, { count: 1, kind: 'full', state: 'held', ageMs: 300 * DAY_MS });
  const unfinished = write(bench, ({ runs }) =>
    runs.create({ kind: 'full', from: null, startedAt: NOW - 299 * DAY_MS, tick: null, selection: SELECTION }),
  );
  const [unusual = 0] = addRuns(bench, { count: 1, ageMs: 298 * DAY_MS });
  const losses = { from: 1, field: 'title', products: 1, living: 1 };
  write(bench, ({ runs }) => runs.noteLosses(unusual, { title: 1 }, losses));
  const old = addRuns(bench, { count: 200, ageMs: 200 * DAY_MS });
  const [decided = 0, changing = 0, superseded = 0] = old;
  addRuns(bench, { count: 100, ageMs: 5 * DAY_MS });
  const decision = { who: 'ops', action: 'undo', target: String(decided), argument: null, outcome: null } as const;
  bench.store.request(({ actions }) => actions.add({ ...decision, at: NOW, state: 'done', endedAt: NOW }));
  const run = `(SELECT max(seq) FROM changes)`;
  bench.change([{ vbid: 'A', body: '{"vbid":"A","v":1}' }]);
  execute(bench.store.path, `UPDATE changes SET run_id = ${superseded} WHERE seq = ${run}`);
  bench.change([{ vbid: 'A', body: '{"vbid":"A","v":2}' }]);
  execute(bench.store.path, `UPDATE changes SET run_id = ${changing} WHERE seq = ${run}`);

  const prune = pruningOf(bench);
  expect(await prune()).toBe(197);
  expect(idsIn(bench, 'runs', 'id').slice(0, 6)).toEqual([held, unfinished, unusual, decided, changing, superseded]);
  // Once the log drops the older version, nothing names its run; so few runs are not worth a look at the whole log.
  write(bench, ({ changes }) => changes.prune(changes.lastSeq()));
  expect(await prune()).toBe(0);
  addRuns(bench, { count: 100, ageMs: 200 * DAY_MS });
  addRuns(bench, { count: 100, ageMs: 4 * DAY_MS });
  expect(await prune()).toBe(101);
  expect(idsIn(bench, 'runs', 'id').slice(0, 5)).toEqual([held, unfinished, unusual, decided, changing]);
});

it('pruning keeps rejected items for 30 days, or as long as runs if that is shorter', async () => {
  const bench = open();
  const old = addRuns(bench, { count: 3, ageMs: 31 * DAY_MS });
  const recent = addRuns(bench, { count: 3, ageMs: 29 * DAY_MS });
  expect(idsIn(bench, 'rejected')).toEqual([...old, ...recent]);
  await pruningOf(bench)();
  expect(idsIn(bench, 'rejected')).toEqual(recent);
  await pruningOf(bench)(DAY_MS);
  expect(idsIn(bench, 'rejected')).toEqual([]);
  expect(idsIn(bench, 'runs', 'id')).toEqual([...old, ...recent]);
});
