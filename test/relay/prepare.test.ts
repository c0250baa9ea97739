import type { Sink, SinkEvent } from '@catchword/sink-kit/sink';
import { expect, it } from 'vitest';
import { until, wrapSink } from '../../src/contract/harness.ts';
import { books, temporaryMirror } from './feeding.ts';
import { memory } from './memory.ts';

const BATCH = { events: 4, chars: 1_000_000 };

it('lets a sink prepare each batch but the first while the one before it is delivered', async () => {
  const harness = temporaryMirror();
  const prepared: (readonly SinkEvent[])[] = [];
  const delivered: (readonly SinkEvent[])[] = [];
  const config = wrapSink(memory(BATCH).config(), (sink) => ({
    prepareNext: async (events) => {
      prepared.push(events);
    },
    deliver: async (events, ...rest) => {
      delivered.push(events);
      const isLast = events.length < BATCH.events;
      if (!isLast) await until('the next batch is prepared', () => prepared.length === delivered.length);
      await sink.deliver(events, ...rest);
    },
  }));
  await harness.resume(config, books(11, 1));
  expect(delivered.map(({ length }) => length)).toEqual([4, 4, 3]);
  expect(delivered[1]).toBe(prepared[0]);
  expect(delivered[2]).toBe(prepared[1]);
});

it.each<[string, NonNullable<Sink['prepareNext']>]>([
  ['fails', () => Promise.reject(new Error('not prepared'))],
  ['never ends', () => new Promise(() => {})],
  [
    'takes events away',
    async (events) => {
      (events as SinkEvent[]).length = 0;
    },
  ],
])('delivers everything although a preparation %s', async (_, prepareNext) => {
  const harness = temporaryMirror();
  const target = memory(BATCH);
  await harness.resume(
    wrapSink(target.config(), () => ({ prepareNext })),
    books(11, 1),
  );
  expect(target.rows.map(({ vbid }) => vbid)).toEqual(books(11, 1).map(({ vbid }) => vbid));
});

it('prepares no batch while it still prepares another one', async () => {
  const harness = temporaryMirror();
  let calls = 0;
  const config = wrapSink(memory(BATCH).config(), () => ({
    prepareNext: () => {
      calls++;
      return new Promise(() => {});
    },
  }));
  await harness.resume(config, books(20, 1));
  expect(calls).toBe(1);
});
