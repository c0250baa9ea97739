import { createLog } from '@catchword/base/log';
import { execute } from '@catchword/testing/sqlite';
import { expect, it, onTestFinished } from 'vitest';
import { type Harness, openHarness } from '../../src/contract/harness.ts';
import { productAsOf } from '../../src/store/history/history.ts';
import type { ProductRow } from '../../src/store/rows/product-rows.ts';
import { writeUnder } from '../../src/store/schema/lease.ts';
import { pruneLog } from '../../src/sync/prune-log.ts';

const DAY_MS = 86_400_000;
const KEEP_NOTHING = { logRetentionMs: -DAY_MS, logCap: 1_000 };
const KEEP_A_MONTH = { ...KEEP_NOTHING, logRetentionMs: 30 * DAY_MS };

function prune(bench: Harness, settings = KEEP_NOTHING, nowMs = Date.now(), ageMs = nowMs): number {
  const leased = bench.store.keeperLease.acquire(Date.now());
  try {
    return pruneLog(bench.store, leased, settings, nowMs, createLog('silent'), ageMs);
  } finally {
    leased.release();
  }
}

/** A log with three versions of ten products. */
function thirty(): Harness {
  const bench = openHarness();
  onTestFinished(() => bench.close());
  for (let version = 1; version <= 3; version++) {
    for (let number = 0; number < 10; number++) {
      bench.change([{ vbid: `P${number}`, body: `{"vbid":"P${number}","v":${version}}` }]);
    }
  }
  return bench;
}

function seqs(bench: Harness): number[] {
  return bench.events().map(({ seq }) => seq);
}

function addSink(bench: Harness, name: string, cursor: number): number {
  return writeUnder(bench.store.relayLease, Date.now(), ({ sinks }) => {
    sinks.configure({ name, kind: 'jsonl', address: name, identity: name });
    const id = sinks.get(name)?.id ?? 0;
    sinks.setPosition(id, 1, cursor);
    return id;
  });
}

function replayFrom({ store }: Harness, id: number, after: number): void {
  const sink = store.sinks.list().find((one) => one.id === id);
  if (sink !== undefined) store.request(({ sinks }) => sinks.replay(sink, after));
}

it('records that a clock ahead has dated are judged by the age of the next record', () => {
  const bench = thirty();
  const now = Date.now();
  const date = (from: number, to: number, at: number): void => {
    execute(bench.store.path, `UPDATE changes SET at = ${at} WHERE seq BETWEEN ${from} AND ${to}`);
  };
  date(1, 10, now + 400 * DAY_MS);
  expect(prune(bench, KEEP_A_MONTH)).toBe(0);
  date(11, 20, now - 31 * DAY_MS);
  expect(prune(bench, KEEP_A_MONTH)).toBe(10);
  expect(seqs(bench)[0]).toBe(11);
});

it('records are not dropped that are old only by a clock ahead of the source', () => {
  const bench = thirty();
  const [now, ahead] = [Date.now(), Date.now() + 400 * DAY_MS];
  expect(prune(bench, KEEP_A_MONTH, ahead, now)).toBe(0);
  expect(prune(bench, KEEP_A_MONTH, ahead)).toBe(20);
});

it('pruning keeps the newest record of each product, and drops superseded ones', () => {
  const bench = thirty();
  expect(prune(bench)).toBe(20);
  expect(seqs(bench)).toEqual([21, 22, 23, 24, 25, 26, 27, 28, 29, 30]);
  bench.change([{ vbid: 'P3', body: null }]);
  expect(prune(bench)).toBe(1);
  expect(seqs(bench)).toEqual([21, 22, 23, 25, 26, 27, 28, 29, 30, 31]);
  expect(bench.events().map(({ body }) => (body === null ? null : JSON.parse(body).v))).toEqual([
    ...Array(9).fill(3),
    null,
  ]);
});

it('pruning keeps records that are younger than the retention', () => {
  const bench = thirty();
  expect(prune(bench, { ...KEEP_NOTHING, logRetentionMs: DAY_MS })).toBe(0);
  expect(seqs(bench)).toHaveLength(30);
});

it('pruning keeps records that a paused or stopped sink has not confirmed', () => {
  const bench = thirty();
  addSink(bench, 'fast', 30);
  const slow = addSink(bench, 'slow', 12);
  bench.store.request(({ sinks }) => sinks.setState(slow, 'paused'));
  prune(bench);
  // Only 1 and 2 are superseded by records up to 12.
  expect(seqs(bench)).toEqual(Array.from({ length: 28 }, (_, index) => index + 3));
});

it('pruning does not wait for a sink that the settings do not name any more, and notes the gap', () => {
  const bench = thirty();
  const id = addSink(bench, 'gone', 15);
  writeUnder(bench.store.relayLease, Date.now(), ({ sinks }) => sinks.configureOnly([]));
  expect(prune(bench)).toBe(20);
  expect(bench.store.sinks.gaps(id)).toMatchObject([{ after: 15, upTo: 30 }]);
});

it('pruning disables a sink beyond the cap, says so, and notes the gap', () => {
  const bench = thirty();
  const id = addSink(bench, 'dead', 5);
  replayFrom(bench, id, 5);
  expect(prune(bench, { ...KEEP_NOTHING, logCap: 25 })).toBe(0);
  expect(bench.store.sinks.get('dead')?.state).toBe('running');
  expect(prune(bench, { ...KEEP_NOTHING, logCap: 24 })).toBe(20);
  expect(bench.store.sinks.get('dead')).toMatchObject({
    state: 'disabled',
    error: expect.stringContaining('25 changes behind'),
  });
  expect(bench.store.sinks.gaps(id)).toMatchObject([{ after: 5, upTo: 30 }]);
});

it('pruning does not disable a resumed sink again while it catches up', () => {
  const bench = thirty();
  const id = addSink(bench, 'late', 5);
  replayFrom(bench, id, 5);
  prune(bench, { ...KEEP_NOTHING, logCap: 24 });
  bench.store.request(({ sinks }) => sinks.setState(id, 'running'));
  prune(bench, { ...KEEP_NOTHING, logCap: 24 });
  expect(bench.store.sinks.get('late')?.state).toBe('running');
});

it('pruning does not count the backfill of a sink against the cap', () => {
  const bench = thirty();
  addSink(bench, 'new', 0);
  prune(bench, { ...KEEP_NOTHING, logCap: 1 });
  expect(bench.store.sinks.get('new')?.state).toBe('running');
  expect(seqs(bench)).toHaveLength(30);
});

it('an old state that the log no longer holds is reported', () => {
  const bench = thirty();
  prune(bench);
  const row = bench.store.products.get('P0') as ProductRow;
  expect(() => productAsOf(bench.store, row, 5)).toThrow(expect.objectContaining({ code: 'NOT_FOUND' }));
  expect(productAsOf(bench.store, row, 21).body).toBe('{"vbid":"P0","v":3}');
});
