import Database from 'better-sqlite3';
import { expect, it, onTestFinished } from 'vitest';
import { openWorkbench, until, type Workbench } from '../../src/relay/contract/harness.ts';
import { books } from './feeding.ts';
import { type Memory, memory } from './memory.ts';

function setUp(batch?: { events: number; chars: number }): { bench: Workbench; store: Memory } {
  const bench = openWorkbench();
  onTestFinished(() => bench.close());
  return { bench, store: memory(batch) };
}

async function fed({ bench, store }: { bench: Workbench; store: Memory }, ...changes: (() => void)[]) {
  bench.start(store.config());
  for (const change of changes) {
    change();
    await bench.caughtUp();
  }
}

function skip(bench: Workbench, seq: number): void {
  bench.store.request(({ sinks }) => sinks.skip(bench.sink().id, seq, 0));
}

function parked(bench: Workbench): [number, string][] {
  return bench.store.sinks.parked(bench.sink().id).map(({ seq, state }) => [seq, state]);
}

function has(store: Memory, seqs: readonly number[]): Promise<void> {
  return until(`it has ${seqs.join()}`, () => store.seqs().join() === seqs.join());
}

it('an earlier event of a product does not wait for one that was refused later', async () => {
  const { bench, store } = setUp();
  store.poison.add(5);
  await fed({ bench, store }, () =>
    bench.change([...books(2, 1), ...books(2, 2), ...books(1, 3), ...books(2, 3).slice(1)]),
  );
  expect(store.seqs()).toEqual([1, 2, 3, 4, 6]);
  await bench.stop();
  // Its end is lost, which holds an event of the product of which a later one was refused.
  store.rows.splice(2);
  bench.start(store.config());
  await has(store, [1, 2, 3, 4, 6]);
  await bench.caughtUp();
  expect(parked(bench)).toEqual([[5, 'refused']]);
  skip(bench, 5);
  bench.change(books(1, 4));
  await has(store, [1, 2, 3, 4, 6, 7]);
});

it('a replay of a store that lost more than is replayed begins where the store is', async () => {
  const { bench, store } = setUp();
  await fed(
    { bench, store },
    () => bench.change(books(10, 1)),
    () => bench.store.request(({ sinks }) => sinks.replay(bench.sink().id, 7, false)),
  );
  expect(store.seqs()).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 8, 9, 10]);
  await bench.stop();
  store.rows.splice(3);
  bench.start(store.config());
  await has(store, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
});

it('what was set free is delivered again where the store lost it', async () => {
  const { bench, store } = setUp();
  store.poison.add(1);
  await fed(
    { bench, store },
    () => bench.change(books(2, 1)),
    () => bench.change([...books(1, 2), ...books(2, 2).slice(1)]),
    () => skip(bench, 1),
  );
  await has(store, [2, 4, 3]);
  await until('it is noted', () => bench.store.sinks.parkedCount(bench.sink().id) === 0);
  await bench.stop();
  store.rows.pop();
  bench.start(store.config());
  await has(store, [2, 4, 3]);
});

it('a mirror that was restored from a backup, and has grown since, is not taken for the one before', async () => {
  const { bench, store } = setUp();
  await fed({ bench, store }, () => bench.change(books(5, 1)));
  await bench.stop();
  // What the store was told of the fifth change was recorded at another time.
  store.rows = store.rows.map((row) => ({ ...row, mark: { ...row.mark, at: row.mark.at - 60_000 } }));
  bench.change(books(1, 2));
  bench.start(store.config());
  await until('it stops', () => bench.sink().state === 'stopped');
  expect(bench.sink().error).toContain('a later state of this mirror');
  expect(store.seqs()).toEqual([1, 2, 3, 4, 5]);
});

it('nor where all that the store misses is parked', async () => {
  const { bench, store } = setUp();
  store.poison.add(2);
  await fed({ bench, store }, () => bench.change(books(2, 1)));
  expect(parked(bench)).toEqual([[2, 'refused']]);
  await bench.stop();
  store.rows = store.rows.map((row) => ({ ...row, mark: { ...row.mark, at: row.mark.at - 60_000 } }));
  bench.start(store.config());
  await until('it stops', () => bench.sink().state === 'stopped');
  expect(bench.sink().error).toContain('a later state of this mirror');
});

it('what is parked stays parked under another name, or at another address, of the same store', async () => {
  const { bench, store } = setUp();
  store.poison.add(2);
  await fed({ bench, store }, () =>
    bench.change([...books(1, 1), ...books(1, 2), ...books(2, 3).slice(1), ...books(1, 4)]),
  );
  expect(parked(bench)).toEqual([
    [2, 'refused'],
    [4, 'waiting'],
  ]);
  await bench.stop();
  bench.start(store.config({ address: 'alias', identity: 'alias' }));
  await until('it is open', () => bench.sink().opened);
  await bench.stop();
  bench.start(store.config({ name: 'renamed', address: 'alias', identity: 'alias' }));
  const { sinks } = bench.store;
  await until('it is open', () => sinks.get('renamed')?.opened ?? false);
  const id = sinks.get('renamed')?.id ?? 0;
  bench.store.request(({ sinks }) => sinks.skip(id, 2, 0));
  await has(store, [1, 3, 4]);
});

it('a replay that is ordered before a renamed store is opened is carried out', async () => {
  const { bench, store } = setUp();
  const replay = (name: string): void =>
    bench.store.request(({ sinks }) => sinks.replay(bench.store.sinks.get(name)?.id ?? 0, 0, true));
  await fed(
    { bench, store },
    () => bench.change(books(2, 1)),
    () => replay('contract'),
    () => replay('contract'),
  );
  await bench.stop();
  store.isDown = true;
  bench.start(store.config({ name: 'renamed' }));
  await until('it fails', () => (bench.store.sinks.get('renamed')?.error ?? null) !== null);
  replay('renamed');
  store.isDown = false;
  await has(store, [1, 2, 1, 2, 1, 2, 1, 2]);
});

it('an order to take a store over does not hold for another one', async () => {
  const { bench, store } = setUp();
  await fed({ bench, store }, () => bench.change(books(2, 1)));
  await bench.stop();
  bench.store.request(({ sinks }) => sinks.replay(bench.sink().id, 0, true));
  const other = setUp().store;
  const foreign = { incarnation: 'another', generation: 1, cursor: 9, at: 0, late: 0 };
  other.rows.push({ seq: 9, vbid: 'X', body: '{}', mark: foreign });
  bench.start(other.config({ address: 'elsewhere', identity: 'elsewhere' }));
  await until('it stops', () => bench.sink().state === 'stopped');
  expect(other.seqs()).toEqual([9]);
});

it.each([{ generation: Number.NaN }, { cursor: 1.5 }, { cursor: -5 }, { generation: 0 }])(
  'what a sink tells of itself is looked at first: %j',
  async (wrong) => {
    const { bench, store } = setUp();
    bench.change(books(2, 1));
    store.told = { incarnation: bench.store.incarnation, generation: 1, cursor: 0, at: 0, late: 0, ...wrong };
    bench.start(store.config());
    await until(
      'it is told',
      () => bench.store.sinks.get('contract')?.error === 'the sink told no usable mark when it was opened',
    );
    store.told = undefined;
    await bench.caughtUp();
    expect(store.seqs()).toEqual([1, 2]);
  },
);

it('what is set free comes in batches as large as all others', async () => {
  const { bench, store } = setUp({ events: 50, chars: 20_000 });
  const large = (version: number) => [
    { vbid: 'P0', body: JSON.stringify({ vbid: 'P0', version, long: 'x'.repeat(5_000) }) },
  ];
  store.poison.add(1);
  await fed({ bench, store }, () => {
    for (let version = 1; version <= 20; version++) bench.change(large(version));
  });
  store.calls.splice(0);
  skip(bench, 1);
  await until('all are there', () => store.rows.length === 19);
  expect(store.calls.length).toBeGreaterThan(3);
  for (const { chars } of store.calls) expect(chars).toBeLessThan(25_000);
});

it('one that answers again has no error any more, though there is nothing to tell it', async () => {
  const { bench, store } = setUp();
  await fed({ bench, store }, () => bench.change(books(2, 1)));
  const sqlite = new Database(bench.store.path);
  sqlite.exec("UPDATE sinks SET error = 'it was down', error_at = 1, retry_at = 2");
  sqlite.close();
  await until('it is well', () => bench.sink().error === null && bench.sink().retryAt === null);
});
