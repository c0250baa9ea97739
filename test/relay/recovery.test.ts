import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { createLog } from '../../src/log.ts';
import { type Harness, hastyClock, SINK_NAME, until, wrapSink } from '../../src/relay/contract/harness.ts';
import { startRelay } from '../../src/relay/relay.ts';
import { SinkError } from '../../src/relay/sink.ts';
import { sinkConfig } from '../../src/relay/sink-config.ts';
import { writeUnder } from '../../src/store/hold-lease.ts';
import { books, fed, feeding, paused } from './feeding.ts';
import { jsonlTarget } from './targets.ts';

function numbers(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => index + from);
}

function fileOf({ directory }: { directory: string }): string {
  return join(directory, 'changes.jsonl');
}

/** Truncates the file after `count` lines. */
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

it('delivers every change since then to a sink that was renamed', async () => {
  const { harness, target, config } = await paused(jsonlTarget(), 10);
  harness.change([{ vbid: 'P3', body: null }]);
  harness.change(books(5, 2).slice(4));
  harness.change(books(5, 3).slice(4));
  harness.start({ ...config, name: 'renamed' });
  await until('all events are there', async () => (await target.read()).seqs?.length === 13);
  await harness.stop();
  expect((await target.read()).seqs).toEqual(numbers(1, 13));
  expect((await target.read()).products).toEqual(harness.living());
});

it('redelivers lost events, also if others were freed meanwhile', async () => {
  const { harness, target, config } = await paused(jsonlTarget(), 100);
  keepLines(fileOf(target), 50);
  refuse(harness, 1);
  skip(harness, 1);
  harness.change(books(1, 2));
  harness.start(config);
  await until('all events are there', async () => (await target.read()).seqs?.length === 101);
  expect((await target.read()).seqs).toEqual(numbers(1, 101));
});

it('repeats a replay that the store lost', async () => {
  const { harness, target, config } = await paused(jsonlTarget(), 20);
  const [text, state] = [fileOf(target), `${fileOf(target)}.state`].map((file) => readFileSync(file));
  harness.store.request(({ sinks }) => sinks.replay(harness.sink().id, 10, false));
  harness.start(config);
  await harness.caughtUp();
  await harness.stop();
  writeFileSync(fileOf(target), text ?? '');
  writeFileSync(`${fileOf(target)}.state`, state ?? '');
  harness.start(config);
  await until('the replay is there again', async () => (await target.read()).seqs?.length === 30);
  expect((await target.read()).seqs).toEqual([...numbers(1, 20), ...numbers(11, 20)]);
});

it('delivers nothing twice if the operator skips during a delivery', async () => {
  const { harness, target, config } = await feeding(jsonlTarget());
  harness.change(books(4_000, 1));
  let turns = 0;
  const skipping = wrapSink(config, (sink) => ({
    batch: { events: 50, chars: 1_000_000 },
    deliver: async (events, mark, signal) => {
      await sink.deliver(events, mark, signal);
      if (++turns % 10 === 0) harness.store.request(({ sinks }) => sinks.skip(harness.sink().id, 999_999, 0));
    },
  }));
  harness.start(skipping);
  await harness.caughtUp();
  expect((await target.read()).seqs).toEqual(numbers(1, 4_000));
  expect(harness.sink().generation).toBeGreaterThan(5);
});

it('delivers nothing twice after a kill during a rotation', async () => {
  const { harness, target, config } = await paused(jsonlTarget('?rotate=1kB&gzip=off'), 10);
  // The state between the rename and the next step, before the mirror recorded the last batch.
  const state = JSON.parse(readFileSync(`${fileOf(target)}.state`, 'utf8')) as Record<string, unknown>;
  const { length } = readFileSync(fileOf(target));
  writeFileSync(`${fileOf(target)}.state`, JSON.stringify({ ...state, offset: length, cursor: 10 }));
  renameSync(fileOf(target), fileOf(target).replace('.jsonl', `-${'10'.padStart(20, '0')}.jsonl`));
  writeUnder(harness.store.relayLease, Date.now(), ({ sinks }) => sinks.reconcile(harness.sink().id, 1, 5));
  harness.change(books(5, 2));
  for (let start = 0; start < 3; start++) {
    harness.start(config);
    await harness.caughtUp();
    await harness.stop();
  }
  harness.change(books(1, 3));
  harness.start(config);
  await harness.caughtUp();
  expect((await target.read()).seqs).toEqual(numbers(1, 16));
});

/** Parks an event as the relay does when a sink refuses it. */
function refuse(harness: Harness, seq: number): void {
  const [change] = harness.events(seq - 1);
  if (change === undefined) throw new Error(`event ${seq} does not exist`);
  const parked = { seq, reason: 'poison', at: 0, change };
  writeUnder(harness.store.relayLease, Date.now(), ({ sinks }) => sinks.park(harness.sink().id, parked));
}

function skip(harness: Harness, seq: number): void {
  harness.store.request(({ sinks }) => sinks.skip(harness.sink().id, seq, 0));
}

it('does not lose waiting events in a crash', async () => {
  const { harness, target, config } = await paused(jsonlTarget(), 2);
  refuse(harness, 1);
  // One batch: P1, then P0, which must wait, and P1 again. The relay ends before the ack is written.
  harness.change([...books(2, 2).slice(1), ...books(1, 3), ...books(2, 4).slice(1)]);
  await harness.crash(config);
  harness.start(config);
  await harness.caughtUp();
  skip(harness, 1);
  await until('the waiting events are there', async () => (await target.read()).seqs?.length === 5);
  expect((await target.read()).seqs).toEqual([1, 2, 3, 5, 4]);
});

it('delivers freed events once after a crash and another skip', async () => {
  const { harness, target, config } = await paused(jsonlTarget(), 3);
  refuse(harness, 1);
  refuse(harness, 2);
  harness.change(books(2, 2));
  harness.change(books(2, 3));
  harness.change(books(3, 4).slice(2));
  harness.start(config);
  await harness.caughtUp();
  await harness.stop();
  skip(harness, 2);
  await harness.crash(config);
  skip(harness, 1);
  harness.start(config);
  await until('the waiting events are there', async () => (await target.read()).seqs?.length === 8);
  await until('the delivery is recorded', () => harness.store.sinks.parkedCount(harness.sink().id) === 0);
  expect((await target.read()).seqs).toEqual([1, 2, 3, 8, 5, 7, 4, 6]);
});

it('delivers waiting events if their event is skipped during a delivery', async () => {
  const { harness, target, config } = await paused(jsonlTarget(), 2);
  refuse(harness, 1);
  harness.change([...books(2, 2).slice(1), ...books(1, 3)]);
  let skipped = false;
  const skipping = wrapSink(config, (sink) => ({
    deliver: async (events, mark, signal) => {
      await sink.deliver(events, mark, signal);
      if (!skipped) skip(harness, 1);
      skipped = true;
    },
  }));
  harness.start(skipping);
  await until('the waiting events are there', async () => (await target.read()).seqs?.length === 4);
  harness.change(books(1, 4));
  await until('the later event is there', async () => (await target.read()).seqs?.length === 5);
  expect((await target.read()).seqs).toEqual([1, 2, 3, 4, 5]);
});

it('delivers a replay once that is ordered while the sink is being opened', async () => {
  const { harness, target, config } = await paused(jsonlTarget(), 3);
  let replayed = false;
  const late = wrapSink(config, (sink) => ({
    open: async (mark, newest, signal) => {
      const opened = await sink.open(mark, newest, signal);
      if (!replayed) harness.store.request(({ sinks }) => sinks.replay(harness.sink().id, 1, false));
      replayed = true;
      return opened;
    },
  }));
  harness.start(late);
  await harness.caughtUp();
  harness.change(books(1, 2));
  await harness.caughtUp();
  expect((await target.read()).seqs).toEqual([1, 2, 3, 2, 3, 4]);
});

it('parks nothing if the sink cannot be opened', async () => {
  const { harness, target, config } = await feeding(jsonlTarget());
  let opened = 0;
  const unwilling = wrapSink(config, (sink) => ({
    open: async (mark, newest, signal) => {
      if (++opened < 4) throw new SinkError('refused', 'not today');
      return await sink.open(mark, newest, signal);
    },
  }));
  harness.change(books(3, 1));
  harness.start(unwilling);
  await until('the failure is recorded', () => harness.store.sinks.get(SINK_NAME)?.error === 'not today');
  await harness.caughtUp();
  expect(harness.store.sinks.parked(harness.sink().id)).toEqual([]);
  expect((await target.read()).seqs).toEqual([1, 2, 3]);
});

it('does not write after another process has written', async () => {
  const { harness, target, config } = await fed(jsonlTarget(), 3);
  // A relay that was suspended and has been replaced.
  const other = await config.make();
  const mark = { incarnation: harness.store.incarnation, generation: 1, cursor: 3, at: 0, late: 0 };
  await other.open(mark, 3, new AbortController().signal);
  harness.change(books(1, 2));
  await harness.caughtUp();
  const [change] = harness.events(3);
  if (change === undefined) throw new Error('event 4 does not exist');
  const stale = other.deliver([{ ...change, text: '{}' }], { ...mark, cursor: 4 }, new AbortController().signal);
  await expect(stale).rejects.toThrow('another process has written');
  await other.close();
  expect((await target.read()).seqs).toEqual(numbers(1, 4));
});

it('a relay without sinks leaves those of an active relay configured', async () => {
  const { harness, config } = await fed(jsonlTarget(), 3);
  const other = startRelay({
    store: harness.store,
    sinks: [],
    clock: hastyClock,
    log: createLog('silent'),
    source: 'http://service.example',
  });
  onTestFinished(() => other.stop());
  harness.change(books(3, 2));
  await harness.caughtUp();
  expect(harness.sink().configured).toBe(true);
  await harness.stop();
  // When the active relay has stopped, the sink is marked as not configured, and the log does not wait for it.
  await until('it is recorded', () => harness.store.sinks.get(SINK_NAME)?.configured === false);
  // It leaves the lease to a later relay.
  harness.start(config);
  harness.change(books(3, 3));
  await harness.caughtUp();
  expect(harness.sink().configured).toBe(true);
});

it.each([
  ['redis://127.0.0.1/shop', 'not a database number'],
  ['postgres://user:12345/Sl@host/db', 'cannot be parsed'],
  ['postgres://user:12345#Sl@host/db', 'cannot be parsed'],
  ['jsonl://data/changes.jsonl', 'contains a host or a #'],
  ['jsonl:data/a#b.jsonl', 'contains a host or a #'],
])('rejects %s without repeating it', (url, message) => {
  const make = () => sinkConfig({ env: 'CATCHWORD_SINK_X', name: 'x', url, secret: undefined });
  expect(make).toThrow(message);
  expect(make).not.toThrow('12345');
});
