import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { createLog } from '../../src/log.ts';
import { altered, SINK_NAME, until, type Workbench } from '../../src/relay/contract/harness.ts';
import { startRelay } from '../../src/relay/relay.ts';
import { SinkError } from '../../src/relay/sink.ts';
import { sinkConfig } from '../../src/relay/sink-config.ts';
import { writeUnder } from '../../src/store/hold-lease.ts';
import { books, feeding } from './feeding.ts';
import { jsonlTarget } from './targets.ts';

function numbers(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => index + from);
}

function fileOf({ directory }: { directory: string }): string {
  return join(directory, 'changes.jsonl');
}

/** Cuts the file off after so many lines. */
function keepLines(file: string, count: number): void {
  writeFileSync(
    file,
    readFileSync(file, 'utf8')
      .split('\n')
      .slice(0, count)
      .map((line) => `${line}\n`)
      .join(''),
  );
}

it('under another name, a store is told of all that happened since it was fed', async () => {
  const { bench, target, config } = await feeding(jsonlTarget());
  bench.start(config);
  bench.change(books(10, 1));
  await bench.caughtUp();
  await bench.stop();
  bench.change([{ vbid: 'P3', body: null }]);
  bench.change(books(5, 2).slice(4));
  bench.change(books(5, 3).slice(4));
  bench.start({ ...config, name: 'renamed' });
  await until('all is there', async () => (await target.read()).seqs?.length === 13);
  await bench.stop();
  expect((await target.read()).seqs).toEqual(numbers(1, 13));
  expect((await target.read()).products).toEqual(bench.living());
});

it('is sent what it lost, also where events were set free meanwhile', async () => {
  const { bench, target, config } = await feeding(jsonlTarget());
  bench.start(config);
  bench.change(books(100, 1));
  await bench.caughtUp();
  await bench.stop();
  keepLines(fileOf(target), 50);
  refuse(bench, 1);
  skip(bench, 1);
  bench.change(books(1, 2));
  bench.start(config);
  await until('all is there', async () => (await target.read()).seqs?.length === 101);
  expect((await target.read()).seqs).toEqual(numbers(1, 101));
});

it('is sent a replay again of which it lost everything', async () => {
  const { bench, target, config } = await feeding(jsonlTarget());
  bench.start(config);
  bench.change(books(20, 1));
  await bench.caughtUp();
  await bench.stop();
  const [text, state] = [fileOf(target), `${fileOf(target)}.state`].map((file) => readFileSync(file));
  bench.store.request(({ sinks }) => sinks.replay(bench.sink().id, 10, false));
  bench.start(config);
  await bench.caughtUp();
  await bench.stop();
  writeFileSync(fileOf(target), text ?? '');
  writeFileSync(`${fileOf(target)}.state`, state ?? '');
  bench.start(config);
  await until('the replay is there again', async () => (await target.read()).seqs?.length === 30);
  expect((await target.read()).seqs).toEqual([...numbers(1, 20), ...numbers(11, 20)]);
});

it('nothing comes twice where the operator skips while a batch is on its way', async () => {
  const { bench, target, config } = await feeding(jsonlTarget());
  bench.change(books(4_000, 1));
  let turns = 0;
  const skipping = altered(config, (sink) => ({
    batch: { events: 50, chars: 1_000_000 },
    deliver: async (events, mark, signal) => {
      await sink.deliver(events, mark, signal);
      if (++turns % 10 === 0) bench.store.request(({ sinks }) => sinks.skip(bench.sink().id, 999_999, 0));
    },
  }));
  bench.start(skipping);
  await bench.caughtUp();
  expect((await target.read()).seqs).toEqual(numbers(1, 4_000));
  expect(bench.sink().generation).toBeGreaterThan(5);
});

it('nothing comes twice where it was killed while the file was rotated', async () => {
  const { bench, target, config } = await feeding(jsonlTarget('?rotate=1kB&gzip=off'));
  bench.start(config);
  bench.change(books(10, 1));
  await bench.caughtUp();
  await bench.stop();
  // As it is between the renaming and what follows it, with a mirror that does not know of the last batch yet.
  const state = JSON.parse(readFileSync(`${fileOf(target)}.state`, 'utf8')) as Record<string, unknown>;
  const { length } = readFileSync(fileOf(target));
  writeFileSync(`${fileOf(target)}.state`, JSON.stringify({ ...state, offset: length, cursor: 10 }));
  renameSync(fileOf(target), fileOf(target).replace('.jsonl', `-${'10'.padStart(20, '0')}.jsonl`));
  writeUnder(bench.store.relayLease, Date.now(), ({ sinks }) => sinks.reconcile(bench.sink().id, 1, 5));
  bench.change(books(5, 2));
  for (let start = 0; start < 3; start++) {
    bench.start(config);
    await bench.caughtUp();
    await bench.stop();
  }
  bench.change(books(1, 3));
  bench.start(config);
  await bench.caughtUp();
  expect((await target.read()).seqs).toEqual(numbers(1, 16));
});

/** As the relay does with an event that the sink refuses. */
function refuse(bench: Workbench, seq: number): void {
  const [change] = bench.events(seq - 1);
  if (change === undefined) throw new Error(`no event ${seq}`);
  const parked = { seq, reason: 'poison', at: 0, change };
  writeUnder(bench.store.relayLease, Date.now(), ({ sinks }) => sinks.park(bench.sink().id, parked));
}

function skip(bench: Workbench, seq: number): void {
  bench.store.request(({ sinks }) => sinks.skip(bench.sink().id, seq, 0));
}

it('what waits behind a refused event is not lost in a crash', async () => {
  const { bench, target, config } = await feeding(jsonlTarget());
  bench.start(config);
  bench.change(books(2, 1));
  await bench.caughtUp();
  await bench.stop();
  refuse(bench, 1);
  // In one batch: P1, then P0, which has to wait, and P1 again. The relay ends when that is delivered and not noted.
  bench.change([...books(2, 2).slice(1), ...books(1, 3), ...books(2, 4).slice(1)]);
  await bench.crash(config);
  bench.start(config);
  await bench.caughtUp();
  skip(bench, 1);
  await until('what waited is there', async () => (await target.read()).seqs?.length === 5);
  expect((await target.read()).seqs).toEqual([1, 2, 3, 5, 4]);
});

it('what was set free does not come twice where it was not noted, and another event was skipped since', async () => {
  const { bench, target, config } = await feeding(jsonlTarget());
  bench.start(config);
  bench.change(books(3, 1));
  await bench.caughtUp();
  await bench.stop();
  refuse(bench, 1);
  refuse(bench, 2);
  bench.change(books(2, 2));
  bench.change(books(2, 3));
  bench.change(books(3, 4).slice(2));
  bench.start(config);
  await bench.caughtUp();
  await bench.stop();
  skip(bench, 2);
  await bench.crash(config);
  skip(bench, 1);
  bench.start(config);
  await until('what waited is there', async () => (await target.read()).seqs?.length === 8);
  await until('and noted', () => bench.store.sinks.parkedCount(bench.sink().id) === 0);
  expect((await target.read()).seqs).toEqual([1, 2, 3, 8, 5, 7, 4, 6]);
});

it('what waits is delivered where its event is skipped while the batch is on its way', async () => {
  const { bench, target, config } = await feeding(jsonlTarget());
  bench.start(config);
  bench.change(books(2, 1));
  await bench.caughtUp();
  await bench.stop();
  refuse(bench, 1);
  bench.change([...books(2, 2).slice(1), ...books(1, 3)]);
  let skipped = false;
  const skipping = altered(config, (sink) => ({
    deliver: async (events, mark, signal) => {
      await sink.deliver(events, mark, signal);
      if (!skipped) skip(bench, 1);
      skipped = true;
    },
  }));
  bench.start(skipping);
  await until('what waited is there', async () => (await target.read()).seqs?.length === 4);
  bench.change(books(1, 4));
  await until('what came later is there', async () => (await target.read()).seqs?.length === 5);
  expect((await target.read()).seqs).toEqual([1, 2, 3, 4, 5]);
});

it('a replay that is ordered while the sink is opened is delivered once', async () => {
  const { bench, target, config } = await feeding(jsonlTarget());
  bench.start(config);
  bench.change(books(3, 1));
  await bench.caughtUp();
  await bench.stop();
  let replayed = false;
  const late = altered(config, (sink) => ({
    open: async (mark, newest, signal) => {
      const told = await sink.open(mark, newest, signal);
      if (!replayed) bench.store.request(({ sinks }) => sinks.replay(bench.sink().id, 1, false));
      replayed = true;
      return told;
    },
  }));
  bench.start(late);
  await bench.caughtUp();
  bench.change(books(1, 2));
  await bench.caughtUp();
  expect((await target.read()).seqs).toEqual([1, 2, 3, 2, 3, 4]);
});

it('parks nothing where the sink itself cannot be opened', async () => {
  const { bench, target, config } = await feeding(jsonlTarget());
  let opened = 0;
  const unwilling = altered(config, (sink) => ({
    open: async (mark, newest, signal) => {
      if (++opened < 4) throw new SinkError('refused', 'not today');
      return await sink.open(mark, newest, signal);
    },
  }));
  bench.change(books(3, 1));
  bench.start(unwilling);
  await until('the failure is noted', () => bench.store.sinks.get(SINK_NAME)?.error === 'not today');
  await bench.caughtUp();
  expect(bench.store.sinks.parked(bench.sink().id)).toEqual([]);
  expect((await target.read()).seqs).toEqual([1, 2, 3]);
});

it('does not write behind what another process has written', async () => {
  const { bench, target, config } = await feeding(jsonlTarget());
  bench.start(config);
  bench.change(books(3, 1));
  await bench.caughtUp();
  // What a relay does that was suspended, and believes to be the relay still.
  const other = await config.make();
  const mark = { incarnation: bench.store.incarnation, generation: 1, cursor: 3, at: 0, late: 0 };
  await other.open(mark, 3, new AbortController().signal);
  bench.change(books(1, 2));
  await bench.caughtUp();
  const [change] = bench.events(3);
  if (change === undefined) throw new Error('no event');
  const stale = other.deliver([{ ...change, text: '{}' }], { ...mark, cursor: 4 }, new AbortController().signal);
  await expect(stale).rejects.toThrow('somebody else has written');
  await other.close();
  expect((await target.read()).seqs).toEqual(numbers(1, 4));
});

it('a process without sinks leaves those of another relay alone', async () => {
  const { bench, config } = await feeding(jsonlTarget());
  bench.start(config);
  bench.change(books(3, 1));
  await bench.caughtUp();
  const other = startRelay({
    store: bench.store,
    sinks: [],
    clock: systemClock,
    log: createLog('silent'),
    source: 'http://service.example',
  });
  onTestFinished(() => other.stop());
  bench.change(books(3, 2));
  await bench.caughtUp();
  expect(bench.sink().configured).toBe(true);
  await bench.stop();
  // Once the other one is gone, nobody feeds it, and the log need not wait.
  await until('it is noted', () => bench.store.sinks.get(SINK_NAME)?.configured === false);
  // Nor does it stand in the way of one that comes later.
  bench.start(config);
  bench.change(books(3, 3));
  await bench.caughtUp();
  expect(bench.sink().configured).toBe(true);
});

it.each([
  ['redis://127.0.0.1/shop', 'not the number of a database'],
  ['postgres://user:12345/Sl@host/db', 'cannot be taken apart'],
  ['postgres://user:12345#Sl@host/db', 'cannot be taken apart'],
  ['jsonl://data/changes.jsonl', 'has a host or a #'],
  ['jsonl:data/a#b.jsonl', 'has a host or a #'],
])('%s is refused, and not shown', (url, message) => {
  const make = () => sinkConfig({ env: 'CATCHWORD_SINK_X', name: 'x', url, secret: undefined });
  expect(make).toThrow(message);
  expect(make).not.toThrow('12345');
});
