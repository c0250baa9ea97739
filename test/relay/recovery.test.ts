import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { SinkError } from '@catchword/sink-kit/sink';
import { expect, it, onTestFinished } from 'vitest';
import { SINK_NAME, until, wrapSink } from '../../src/contract/harness.ts';
import { writeUnder } from '../../src/store/schema/lease.ts';
import { arrived, books, fed, fedBefore, feeding, numbers, relayOf } from './feeding.ts';
import { jsonlTarget } from './targets.ts';

it('delivers every change since then to a sink that was renamed', async () => {
  const { harness, target, config } = await fedBefore(jsonlTarget(), 10);
  harness.change([{ vbid: 'P3', body: null }]);
  harness.change(books(5, 2).slice(4));
  harness.change(books(5, 3).slice(4));
  harness.start({ ...config, name: 'renamed' });
  await arrived(target, numbers(1, 13));
  await harness.stop();
  expect((await target.read()).products).toEqual(harness.living());
});

it('redelivers lost events, also if others were freed meanwhile', async () => {
  const { harness, target, config } = await fedBefore(jsonlTarget(), 100);
  target.keepLines(50);
  harness.refuse(1);
  harness.skip(1);
  harness.change(books(1, 2));
  harness.start(config);
  await arrived(target, numbers(1, 101));
});

it('repeats a replay that the store lost', async () => {
  const { harness, target, config } = await fedBefore(jsonlTarget(), 20);
  const [text, state] = [target.file, `${target.file}.state`].map((file) => readFileSync(file));
  harness.replay(10, false);
  await harness.resume(config);
  await harness.stop();
  writeFileSync(target.file, text ?? '');
  writeFileSync(`${target.file}.state`, state ?? '');
  harness.start(config);
  await arrived(target, [...numbers(1, 20), ...numbers(11, 20)]);
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
  await harness.resume(skipping);
  expect((await target.read()).seqs).toEqual(numbers(1, 4_000));
  expect(harness.sink().generation).toBeGreaterThan(5);
});

it('delivers nothing twice after a kill during a rotation', async () => {
  const { harness, target, config } = await fedBefore(jsonlTarget('?rotate=1kB&gzip=off'), 10);
  // The state between the rename and the next step, before the mirror recorded the last batch.
  const state = JSON.parse(readFileSync(`${target.file}.state`, 'utf8')) as Record<string, unknown>;
  const { length } = readFileSync(target.file);
  writeFileSync(`${target.file}.state`, JSON.stringify({ ...state, offset: length, cursor: 10 }));
  renameSync(target.file, target.file.replace('.jsonl', `-${'10'.padStart(20, '0')}.jsonl`));
  writeUnder(harness.store.relayLease, Date.now(), ({ sinks }) => sinks.setPosition(harness.sink().id, 1, 5));
  harness.change(books(5, 2));
  for (let start = 0; start < 3; start++) {
    await harness.resume(config);
    await harness.stop();
  }
  await harness.resume(config, books(1, 3));
  expect((await target.read()).seqs).toEqual(numbers(1, 16));
});

it('waiting events survive a crash', async () => {
  const { harness, target, config } = await fedBefore(jsonlTarget(), 2);
  harness.refuse(1);
  // One batch: P1, then P0, which must wait, and P1 again. The relay ends before the ack is written.
  harness.change([...books(2, 2).slice(1), ...books(1, 3), ...books(2, 4).slice(1)]);
  await harness.crash(config);
  await harness.resume(config);
  harness.skip(1);
  await arrived(target, [1, 2, 3, 5, 4]);
});

it('delivers freed events once after a crash and another skip', async () => {
  const { harness, target, config } = await fedBefore(jsonlTarget(), 3);
  harness.refuse(1);
  harness.refuse(2);
  harness.change(books(2, 2));
  harness.change(books(2, 3));
  await harness.resume(config, books(3, 4).slice(2));
  await harness.stop();
  harness.skip(2);
  await harness.crash(config);
  harness.skip(1);
  harness.start(config);
  await arrived(target, [1, 2, 3, 8, 5, 7, 4, 6]);
  await until('the delivery is recorded', () => harness.store.sinks.parkedCount(harness.sink().id) === 0);
});

it('delivers waiting events if their event is skipped during a delivery', async () => {
  const { harness, target, config } = await fedBefore(jsonlTarget(), 2);
  harness.refuse(1);
  harness.change([...books(2, 2).slice(1), ...books(1, 3)]);
  let skipped = false;
  const skipping = wrapSink(config, (sink) => ({
    deliver: async (events, mark, signal) => {
      await sink.deliver(events, mark, signal);
      if (!skipped) harness.skip(1);
      skipped = true;
    },
  }));
  harness.start(skipping);
  await arrived(target, 4);
  harness.change(books(1, 4));
  await arrived(target, [1, 2, 3, 4, 5]);
});

it('delivers a replay once that is ordered while the sink is being opened', async () => {
  const { harness, target, config } = await fedBefore(jsonlTarget(), 3);
  let replayed = false;
  const late = wrapSink(config, (sink) => ({
    open: async (mark, newest, signal) => {
      const opened = await sink.open(mark, newest, signal);
      if (!replayed) harness.replay(1, false);
      replayed = true;
      return opened;
    },
  }));
  await harness.resume(late);
  await harness.deliver(books(1, 2));
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
  expect(harness.parked()).toEqual([]);
  expect((await target.read()).seqs).toEqual([1, 2, 3]);
});

it('a relay without sinks leaves those of an active relay configured', async () => {
  const { harness, config } = await fed(jsonlTarget(), 3);
  const other = relayOf(harness.store, []);
  onTestFinished(() => other.stop());
  await harness.deliver(books(3, 2));
  expect(harness.sink().configured).toBe(true);
  await harness.stop();
  // When the active relay has stopped, the sink is marked as not configured, and the log does not wait for it.
  await until('it is recorded', () => harness.store.sinks.get(SINK_NAME)?.configured === false);
  // It leaves the lease to a later relay.
  await harness.resume(config, books(3, 3));
  expect(harness.sink().configured).toBe(true);
});
