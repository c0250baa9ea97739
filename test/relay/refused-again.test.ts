import { expect, it, onTestFinished } from 'vitest';
import { until } from '../../src/contract/harness.ts';
import { books, temporaryMirror } from './feeding.ts';
import { memory } from './memory.ts';

/** A sink that has refused a product 25 times, with others accepted between, and each time a later event of it waits. */
async function refusing() {
  const mirror = temporaryMirror();
  const store = memory();
  onTestFinished(() => mirror.stop());
  mirror.start(store.config());
  const refuse = (vbid: string, version: number): void => {
    mirror.change([{ vbid, body: JSON.stringify({ vbid, version }) }]);
    store.poison.add(mirror.store.changes.lastSeq());
  };
  for (let n = 0; n < 25; n++) {
    refuse(`X${n}`, 1);
    await mirror.deliver(books(2, n));
    refuse(`X${n}`, 2);
  }
  await mirror.caughtUp();
  const states = () => mirror.parked().map(({ state }) => state);
  const settled = () => until('none is ready', () => mirror.sink().state !== 'running' || !states().includes('ready'));
  const decide = async (what: 'retry' | 'skipAll'): Promise<void> => {
    mirror.store.request(({ sinks }) => sinks[what](mirror.sink().id, 0));
    await settled();
  };
  return { mirror, store, states, decide };
}

it('a sink goes on when each of 25 products is refused again that an operator retries', async () => {
  const { mirror, states, decide } = await refusing();
  await decide('retry');
  expect(mirror.sink().state).toBe('running');
  expect(states().filter((state) => state === 'refused')).toHaveLength(25);
  await mirror.deliver(books(1, 99));
});

it('a sink goes on when each of 25 events is refused that waited for a skipped one', async () => {
  const { mirror, states, decide } = await refusing();
  await decide('skipAll');
  expect(mirror.sink().state).toBe('running');
  expect(states().filter((state) => state === 'refused')).toHaveLength(25);
});

it('a retry of 60 events ends after 20 refusals in a row, and the sink goes on', async () => {
  const mirror = temporaryMirror();
  const store = memory();
  onTestFinished(() => mirror.stop());
  mirror.start(store.config());
  for (let n = 0; n < 60; n++) store.poison.add(2 * n + 1);
  for (let n = 0; n < 30; n++)
    await mirror.deliver([0, 1, 2, 3].map((k) => ({ vbid: `P${4 * n + k}`, body: `{"n":${n}}` })));
  mirror.change([{ vbid: 'P0', body: '{"n":-1}' }]);
  await mirror.caughtUp();
  const states = () => mirror.parked().map(({ state }) => state);
  const before = states();
  let refusals = 0;
  store.poison.has = (seq) => {
    refusals += seq % 2;
    return seq % 2 === 1;
  };
  mirror.store.request(({ sinks }) => sinks.retry(mirror.sink().id));
  await until('none is ready', () => !states().includes('ready'));
  expect(states()).toEqual(before);
  expect(refusals).toBeLessThan(60);
  expect(mirror.parked().at(-1)).toMatchObject({ vbid: 'P0', state: 'waiting' });
  expect(mirror.parked()[45]?.reason).toBe('not sent again: 20 before it were refused');
  await mirror.deliver([
    { vbid: 'Z', body: '{}' },
    { vbid: 'Z', body: '{"n":1}' },
  ]);
  expect(mirror.sink().state).toBe('running');
});

it('a sink stops when 20 new products in a row are refused after a retry', async () => {
  const { mirror, store, decide } = await refusing();
  await decide('retry');
  for (let n = 0; n < 20; n++) store.poison.add(mirror.store.changes.lastSeq() + 1 + n);
  mirror.change(Array.from({ length: 20 }, (_, n) => ({ vbid: `Y${n}`, body: `{"vbid":"Y${n}"}` })));
  await mirror.stopped();
  expect(mirror.sink().error).toContain('20 events in a row were refused');
});
