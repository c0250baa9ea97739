// @module-tag stores

import { systemClock } from '@catchword/base/clock';
import { expect, it, onTestFinished } from 'vitest';
import { until } from '../../src/contract/harness.ts';
import { writeUnder } from '../../src/store/schema/lease.ts';
import type { Store } from '../../src/store/store.ts';
import { books, feeding, relayOf, temporaryMirror } from './feeding.ts';
import { memory } from './memory.ts';
import { PROXIED_KINDS } from './target-kinds.ts';

/** A part of each request that writes a batch. */
const WRITES: Readonly<Record<string, string>> = {
  redis: 'eval',
  nats: 'HPUB',
  postgres: 'WITH moved AS',
  mysql: 'removed_at = NULL',
};

it.each(PROXIED_KINDS.filter(({ name }) => name in WRITES))(
  '$name rejects a batch that was on its way when another relay took over',
  async ({ name, start, prepare }) => {
    const server = await start();
    onTestFinished(() => server.stop());
    const { harness, target, config } = await feeding(prepare(server.port, ''));
    const { store } = harness;
    // By the system's clock it renews its lease, and so notices its loss, only after 10 seconds.
    harness.start(config, { clock: systemClock });
    await harness.deliver(books(100, 1));
    const held = target.hold(WRITES[name] ?? '');
    harness.change(books(100, 2));
    await held.arrived;
    // As after 30 seconds in which the first relay was frozen.
    writeUnder(store.relayLease, Date.now() + 60_000, () => {});
    const second = relayOf(store, [config]);
    onTestFinished(() => second.stop());
    await harness.deliver(books(100, 3));
    held.release();
    // Waits for the answer.
    await harness.stop();
    await harness.deliver(books(50, 4));
    const { seqs, products } = await target.read();
    expect(products).toEqual(harness.living());
    expect(seqs).toEqual(seqs === null ? null : harness.events().map(({ seq }) => seq));
  },
);

it('sends nothing to a store that compares nothing after another relay took over', async () => {
  const target = memory();
  const harness = temporaryMirror();
  const { store } = harness;
  harness.change(books(10, 1));
  let other: ReturnType<Store['relayLease']['acquire']> | undefined;
  const changes: Store['changes'] = {
    ...store.changes,
    // The relay is suspended between reading a batch and sending it.
    newest: (...range) => {
      other ??= store.relayLease.acquire(Date.now() + 60_000);
      return store.changes.newest(...range);
    },
  };
  const lockedOut: Store = { ...store, changes, read: (work) => store.read(() => work(lockedOut)) };
  harness.start(target.config(), { store: lockedOut });
  await until('another relay took over', () => other !== undefined);
  await harness.stop();
  expect(target.rows).toEqual([]);
  other?.release();
});
