import { SinkError } from '@catchword/sink-kit/sink';
import { logOf } from '@catchword/testing/log-of';
import Database from 'better-sqlite3';
import { expect, it } from 'vitest';
import { until, wrapSink } from '../../src/contract/harness.ts';
import { books, type TestMirror, temporaryMirror } from './feeding.ts';
import { type Memory, memory } from './memory.ts';

/** A mirror, a store in memory, and a function that makes changes, each of which the store gets. */
function setUp(batch?: { events: number; chars: number }) {
  const harness = temporaryMirror();
  const store = memory(batch);
  const feed = async (...changes: (() => void)[]): Promise<void> => {
    harness.start(store.config());
    for (const change of changes) {
      change();
      await harness.caughtUp();
    }
  };
  return { harness, store, feed };
}

function parked({ parked }: TestMirror): [number, string][] {
  return parked().map(({ seq, state }) => [seq, state]);
}

function has(store: Memory, seqs: readonly number[]): Promise<void> {
  return until(`it has ${seqs.join()}`, () => store.seqs().join() === seqs.join());
}

it('redelivers an earlier event of a product while a later one is parked', async () => {
  const { harness, store, feed } = setUp();
  store.poison.add(5);
  await feed(() => harness.change([...books(2, 1), ...books(2, 2), ...books(1, 3), ...books(2, 3).slice(1)]));
  expect(store.seqs()).toEqual([1, 2, 3, 4, 6]);
  await harness.stop();
  // The lost end includes an event of the product whose later event is parked.
  store.rows.splice(2);
  harness.start(store.config());
  await has(store, [1, 2, 3, 4, 6]);
  await harness.caughtUp();
  expect(parked(harness)).toEqual([[5, 'refused']]);
  harness.skip(5);
  harness.change(books(1, 4));
  await has(store, [1, 2, 3, 4, 6, 7]);
});

it('starts a replay where the store is if the store lost more', async () => {
  const { harness, store, feed } = setUp();
  await feed(
    () => harness.change(books(10, 1)),
    () => harness.replay(7, false),
  );
  expect(store.seqs()).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 8, 9, 10]);
  await harness.stop();
  store.rows.splice(3);
  harness.start(store.config());
  await has(store, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
});

it('a store that removes the rest at the end of a fill has lost nothing if its last removals were not sent', async () => {
  const { harness, store, feed } = setUp({ events: 2, chars: 1_000_000 });
  const warnings: string[] = [];
  const log = logOf((level) => (fields) => void (level === 'warn' && warnings.push(String(fields.code))));
  let ends = 0;
  const config = wrapSink(store.config(), () => ({
    list: async function* () {
      // The session ends before the end of the fill could write a mark.
      if (ends++ === 0) throw new SinkError('unavailable', 'it is restarted');
      yield books(4, 1).map(({ vbid }) => ({ vbid }));
    },
    apply: async () => {},
  }));
  const gone = books(4, 1).slice(2);
  await feed(
    () => harness.change(books(4, 1)),
    () => harness.change(gone.map(({ vbid }) => ({ vbid, body: null }))),
  );
  await harness.stop();
  harness.replay(0, true);
  harness.start(config, { log });
  await until('the fill has ended', () => harness.sink().fillEnd !== null);
  expect(store.seqs().slice(6)).toEqual([1, 2]);
  expect(warnings).not.toContain('SINK_LOST_EVENTS');
});

it('redelivers a freed event that the store lost', async () => {
  const { harness, store, feed } = setUp();
  store.poison.add(1);
  await feed(
    () => harness.change(books(2, 1)),
    () => harness.change([...books(1, 2), ...books(2, 2).slice(1)]),
    () => harness.skip(1),
  );
  await has(store, [2, 4, 3]);
  await until('it is recorded', () => harness.store.sinks.parkedCount(harness.sink().id) === 0);
  await harness.stop();
  store.rows.pop();
  harness.start(store.config());
  await has(store, [2, 4, 3]);
});

it('stops after a restored backup even if all missing events are parked', async () => {
  const { harness, store, feed } = setUp();
  store.poison.add(2);
  await feed(() => harness.change(books(2, 1)));
  expect(parked(harness)).toEqual([[2, 'refused']]);
  await harness.stop();
  store.rows = store.rows.map((row) => ({ ...row, mark: { ...row.mark, at: row.mark.at - 60_000 } }));
  await harness.stopped(store.config());
  expect(harness.sink().error).toContain('a later state of this mirror');
});

it('keeps parked events under another name of the same store', async () => {
  const { harness, store, feed } = setUp();
  store.poison.add(2);
  await feed(() => harness.change([...books(1, 1), ...books(1, 2), ...books(2, 3).slice(1), ...books(1, 4)]));
  expect(parked(harness)).toEqual([
    [2, 'refused'],
    [4, 'waiting'],
  ]);
  await harness.stop();
  const { id } = harness.sink();
  harness.store.request(({ sinks }) => sinks.rename(id, 'renamed'));
  harness.start(store.config({ name: 'renamed' }));
  harness.store.request(({ sinks }) => sinks.skip(id, 2, 0));
  await has(store, [1, 3, 4]);
});

it('events of one store are not retried at another store that has the same name now', async () => {
  const { harness, store, feed } = setUp();
  const other = setUp().store;
  const second = other.config({ name: 'second', address: 'elsewhere', identity: 'elsewhere' });
  store.poison.add(2);
  await feed(() => harness.change([...books(3, 1), ...books(3, 2)]));
  const waiting = parked(harness);
  expect(waiting).toEqual([
    [2, 'refused'],
    [5, 'waiting'],
  ]);
  await harness.stop();
  // The other store gets everything: both are at the same position.
  harness.start(second);
  await until('the other store has everything', () => harness.store.sinks.get('second')?.cursor === 6);
  await harness.stop();
  const had = other.seqs().length;
  other.isDown = true;
  harness.start({ ...second, name: 'contract' });
  await until('it fails', () => harness.sink().error !== null);
  expect(parked(harness)).toEqual([]);
  harness.store.request(({ sinks }) => sinks.retry(harness.sink().id));
  other.isDown = false;
  await until('it is open', () => harness.sink().error === null);
  await harness.deliver(books(3, 3));
  expect(other.seqs().slice(had)).toEqual([7, 8, 9]);
  // The events are delivered to the first store under any name that it gets.
  await harness.stop();
  store.poison.clear();
  const former = harness.store.sinks.get('contract-former')?.id ?? 0;
  harness.store.request(({ sinks }) => sinks.rename(former, 'first'));
  harness.start(store.config({ name: 'first' }));
  expect(harness.store.sinks.parked(former).map(({ seq, state }) => [seq, state])).toEqual(waiting);
  harness.store.request(({ sinks }) => sinks.retry(former));
  await until('they are delivered', () => [2, 5].every((seq) => store.seqs().includes(seq)));
});

it('carries out a replay that was ordered before a renamed sink was opened', async () => {
  const { harness, store, feed } = setUp();
  const replay = (name: string): void =>
    harness.store.request(({ sinks }) => sinks.replay(sinks.get(name) ?? harness.sink(), null));
  await feed(
    () => harness.change(books(2, 1)),
    () => replay('contract'),
    () => replay('contract'),
  );
  await harness.stop();
  store.isDown = true;
  harness.start(store.config({ name: 'renamed' }));
  await until('it fails', () => (harness.store.sinks.get('renamed')?.error ?? null) !== null);
  replay('renamed');
  store.isDown = false;
  await has(store, [1, 2, 1, 2, 1, 2, 1, 2]);
});

it('a takeover of one store is not applied to another store', async () => {
  const { harness, feed } = setUp();
  await feed(() => harness.change(books(2, 1)));
  await harness.stop();
  harness.replay(0, true);
  const other = setUp().store;
  const foreign = { incarnation: 'another', generation: 1, cursor: 9, at: 0, late: 0 };
  other.rows.push({ seq: 9, vbid: 'X', body: '{}', mark: foreign });
  await harness.stopped(other.config({ address: 'elsewhere', identity: 'elsewhere' }));
  expect(other.seqs()).toEqual([9]);
});

it.each([{ generation: Number.NaN }, { cursor: 1.5 }, { cursor: -5 }, { generation: 0 }])(
  'rejects an invalid mark from open(): %j',
  async (wrong) => {
    const { harness, store } = setUp();
    harness.change(books(2, 1));
    store.openResult = {
      incarnation: harness.store.incarnation,
      generation: 1,
      cursor: 0,
      at: 0,
      late: 0,
      ...wrong,
    };
    harness.start(store.config());
    await until(
      'the error is recorded',
      () => harness.store.sinks.get('contract')?.error === 'the sink returned an invalid mark from open()',
    );
    store.openResult = undefined;
    await harness.caughtUp();
    expect(store.seqs()).toEqual([1, 2]);
  },
);

it('delivers freed events in batches of the usual size', async () => {
  const { harness, store, feed } = setUp({ events: 50, chars: 20_000 });
  const large = (version: number) => [
    { vbid: 'P0', body: JSON.stringify({ vbid: 'P0', version, long: 'x'.repeat(5_000) }) },
  ];
  store.poison.add(1);
  await feed(() => {
    for (let version = 1; version <= 20; version++) harness.change(large(version));
  });
  store.calls.splice(0);
  harness.skip(1);
  await until('all events are there', () => store.rows.length === 19);
  expect(store.calls.length).toBeGreaterThan(3);
  for (const { chars } of store.calls) expect(chars).toBeLessThan(25_000);
});

it('clears the error of a sink that answers again, even without new events', async () => {
  const { harness, feed } = setUp();
  await feed(() => harness.change(books(2, 1)));
  const sqlite = new Database(harness.store.path);
  sqlite.exec("UPDATE sinks SET error = 'it was down', error_at = 1, retry_at = 2");
  sqlite.close();
  await until('the error is cleared', () => harness.sink().error === null && harness.sink().retryAt === null);
});
