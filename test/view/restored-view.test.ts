// @module-tag slow

import { query } from '@catchword/testing/sqlite';
import { describe, expect, it } from 'vitest';
import { until } from '../../src/contract/harness.ts';
import type { SinkConfig } from '../../src/relay/sink-config.ts';
import { backUp } from '../../src/store/file/back-up.ts';
import { copyHere } from '../../src/store/file/copy-subprocess.ts';
import { restore } from '../../src/store/file/restore-backup.ts';
import { openStore } from '../../src/store/store.ts';
import { NEVER, relayOf } from '../relay/feeding.ts';
import { memory } from '../relay/memory.ts';
import { load } from '../support/load.ts';
import { filled, type Place } from '../support/place.ts';
import { where } from './fed-shop.ts';

/** About one product in five, others with each version. */
const FILTER = "substr(e_isbn, -2, 1) IN ('3', '8')";
const OPTIONS = { copy: copyHere, signal: NEVER };

/** A store that cannot list what it has. @param hasMark whether it says where it is; a webhook does not */
function receiver(hasMark = false) {
  const store = memory();
  const config = store.config({ view: where(FILTER) });
  if (hasMark) return { rows: store.rows, config };
  const make: SinkConfig['make'] = async () => ({ ...(await config.make()), open: async () => null });
  return { rows: store.rows, config: { ...config, make } };
}

type Receiver = ReturnType<typeof receiver>;

/** Delivers everything. @param to the store is left when it has got so many events */
async function deliver(db: string, { config, rows }: Receiver, to = Number.POSITIVE_INFINITY): Promise<void> {
  const store = openStore(db, { mustExist: true });
  const relay = relayOf(store, [config]);
  await until('the store has everything', () => {
    return rows.length >= to || store.sinks.get(config.name)?.cursor === store.changes.lastSeq();
  });
  await relay.stop();
  store.close();
}

function contentOf({ rows }: Receiver): Map<string, string> {
  const found = new Map<string, string>();
  for (const { vbid, body } of rows) {
    if (body === null) found.delete(vbid);
    else found.set(vbid, body);
  }
  return found;
}

function shown(db: string): Map<string, string> {
  const rows = query<{ vbid: string; body: string }>(db, `SELECT vbid, body FROM catalog WHERE ${FILTER}`);
  return new Map(rows.map(({ vbid, body }) => [vbid, body]));
}

async function scene() {
  const place = await filled({ items: 400 });
  const store = receiver();
  await deliver(place.db, store);
  place.sandbox.catalog.mutate({ update: 60, remove: 5, seed: 1 });
  await load(place.settings, 'delta');
  // The backup does not know the end of this delivery.
  await deliver(place.db, store, store.rows.length + 1);
  await backUp(place.db, `${place.db}.backup`, OPTIONS);
  await deliver(place.db, store);
  place.sandbox.catalog.mutate({ update: 80, create: 10, remove: 10, seed: 2 });
  await load(place.settings, 'delta');
  await deliver(place.db, store);
  return { ...place, store };
}

async function restored(
  { db, settings, sandbox, store }: Place & { readonly store: Receiver },
  first: 'run' | 'relay',
) {
  const events = store.rows.length;
  await restore(db, `${db}.backup`, { ...OPTIONS, sinks: [store.config] });
  sandbox.catalog.mutate({ update: 40, create: 5, seed: 3 });
  if (first === 'relay') await deliver(db, store);
  await load(settings, 'full');
  await deliver(db, store);
  const removed = store.rows.slice(events).filter(({ body }) => body === null);
  return { removed: new Set(removed.map(({ vbid }) => vbid)) };
}

describe('after a restore, a store that cannot list', () => {
  it.each(['run', 'relay'] as const)('gets every removal, also if a %s comes first', async (first) => {
    const made = await scene();
    const { db } = made;
    const { removed } = await restored(made, first);
    expect(contentOf(made.store)).toEqual(shown(db));
    const [all] = query<{ hidden: number }>(db, `SELECT count(*) AS hidden FROM catalog WHERE (${FILTER}) IS NOT TRUE`);
    expect(removed.size).toBeGreaterThanOrEqual(all?.hidden ?? 0);
  });

  it('loses what had left its view before the backup, if it was set back, too', async () => {
    const { db, settings, sandbox } = await filled({ items: 400 });
    const store = receiver(true);
    await deliver(db, store);
    const earlier = store.rows.length;
    sandbox.catalog.mutate({ update: 60, remove: 5, seed: 1 });
    await load(settings, 'delta');
    await deliver(db, store);
    await backUp(db, `${db}.backup`, OPTIONS);
    store.rows.length = earlier;
    await restore(db, `${db}.backup`, { ...OPTIONS, sinks: [store.config] });
    await deliver(db, store);
    await load(settings, 'full');
    await deliver(db, store);
    expect(contentOf(store)).toEqual(shown(db));
  });
});
