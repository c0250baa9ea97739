import { execute } from '@catchword/testing/sqlite';
import { expect, it } from 'vitest';
import { writeUnder } from '../../src/store/schema/lease.ts';
import { openStore } from '../../src/store/store.ts';
import { load } from '../support/load.ts';
import { place } from '../support/place.ts';
import { serve } from './place.ts';
import { get } from './reader.ts';

const HOUR = 3_600_000;

it('the mirror is ready when it is filled and the sinks are ready', async () => {
  const { db, settings, sandbox } = await place({ items: 20 });
  const { web } = await serve(db);
  const ready = async () => {
    const { status, text } = await get(`${web.url}/readyz`);
    return { status, ...(JSON.parse(text) as { ready: boolean; reason: string | null }) };
  };
  const unready = { status: 503, ready: false, open: null };
  expect(await ready()).toEqual({ ...unready, reason: 'the first full load has not finished' });
  await load(settings, 'full');
  expect(await ready()).toEqual({ status: 200, ready: true, reason: null, open: null });
  const setSink = (state: string) =>
    execute(
      db,
      `INSERT OR REPLACE INTO sinks (id, name, kind, address, identity, state) VALUES (1, 'search', 'jsonl', '', '', '${state}')`,
    );
  // A paused sink is paused on purpose.
  setSink('paused');
  expect(await ready()).toMatchObject({ status: 200 });
  setSink('stopped');
  expect(await ready()).toEqual({ ...unready, reason: 'sink search is stopped' });
  // The process itself is healthy.
  const alive = await get(`${web.url}/healthz`);
  expect(alive.status).toBe(200);
  expect(JSON.parse(alive.text)).toEqual({ alive: true });
  setSink('running');
  await sandbox.stop();
  expect(await ready()).toMatchObject({ status: 200 });
});

it('readiness computes the age without the clock of the source', async () => {
  const { db } = await place({ items: 1 });
  const { web } = await serve(db, { readyMaxAgeMs: HOUR });
  const store = openStore(db);
  const status = async () => (await get(`${web.url}/readyz`)).status;
  const complete = (source: number, local: number) =>
    writeUnder(store.keeperLease, Date.now(), (writer) => writer.advanceWatermark(source, local));
  complete(Date.now() - 40 * HOUR, Date.now());
  expect(await status()).toBe(200);
  complete(Date.now() + 40 * HOUR, Date.now() - 2 * HOUR);
  expect(await status()).toBe(503);
  store.close();
});

it('readiness reports an error of its check as the reason', async () => {
  const { db, settings } = await place({ items: 1 });
  await load(settings, 'full');
  const disk = (): never => {
    throw new Error('the disk cannot be examined');
  };
  const { web, logged } = await serve(db, { disk });
  const { status, text } = await get(`${web.url}/readyz`);
  expect(status).toBe(503);
  expect(JSON.parse(text)).toMatchObject({
    ready: false,
    reason: expect.stringContaining('the disk cannot') as string,
  });
  expect(await logged('readiness check failed')).toMatchObject({ level: 50 });
});
