import { expect, it } from 'vitest';
import { type Clock, systemClock } from '../../src/clock.ts';
import { writeUnder } from '../../src/store/hold-lease.ts';
import { openStore } from '../../src/store/store.ts';
import { load } from '../support/load.ts';
import { place, serve } from './place.ts';
import { get } from './reader.ts';

const HOUR = 3_600_000;

it('a mirror is ready when it was filled, is not too old, and what stands beside it is', async () => {
  const { db, settings, sandbox } = await place({ items: 20 });
  let aheadMs = 0;
  let sinks: string | null = null;
  const clock: Clock = { ...systemClock, now: () => Date.now() + aheadMs };
  const { web } = await serve(db, { clock, readyMaxAgeMs: 26 * HOUR, unready: () => sinks });
  const ready = async () => {
    const { status, text } = await get(`${web.url}/readyz`);
    return { status, ...(JSON.parse(text) as { ready: boolean; reason: string | null }) };
  };
  expect(await ready()).toEqual({ status: 503, ready: false, reason: 'the mirror was never filled' });
  await load(settings, 'full');
  expect(await ready()).toEqual({ status: 200, ready: true, reason: null });

  aheadMs = 25 * HOUR;
  expect(await ready()).toMatchObject({ status: 200 });
  aheadMs = 27 * HOUR;
  expect(await ready()).toMatchObject({ status: 503, ready: false });
  expect((await ready()).reason).toMatch(/as of \d{4}-.*CATCHWORD_READY_MAX_AGE/);
  // As after a clock that was wrong by more than the limit was put right: nothing tells how old the mirror is.
  aheadMs = -27 * HOUR;
  expect(await ready()).toMatchObject({ status: 503, reason: expect.stringContaining('ahead of this') as string });
  aheadMs = 0;

  sinks = 'the sink search is paused';
  expect(await ready()).toEqual({ status: 503, ready: false, reason: 'the sink search is paused' });
  // The process is well all the same.
  const alive = await get(`${web.url}/healthz`);
  expect(alive.status).toBe(200);
  expect(JSON.parse(alive.text)).toEqual({ alive: true });
  sinks = null;
  await sandbox.stop();
  expect(await ready()).toMatchObject({ status: 200 });
});

it('the age does not depend on the clock of the source', async () => {
  const { db } = await place({ items: 1 });
  const { web } = await serve(db, { readyMaxAgeMs: HOUR });
  const store = openStore(db);
  const status = async () => (await get(`${web.url}/readyz`)).status;
  writeUnder(store.keeperLease, Date.now(), (writer) => writer.advanceWatermark(Date.now() - 40 * HOUR, Date.now()));
  expect(await status()).toBe(200);
  writeUnder(store.keeperLease, Date.now(), (writer) =>
    writer.advanceWatermark(Date.now() + 40 * HOUR, Date.now() - 2 * HOUR),
  );
  expect(await status()).toBe(503);
  store.close();
});

it('what fails while it is asked is a reason, too', async () => {
  const { db, settings } = await place({ items: 1 });
  await load(settings, 'full');
  const failing = (): never => {
    throw new Error('sinks are not to be found');
  };
  const { web, logged } = await serve(db, { unready: failing });
  const { status, text } = await get(`${web.url}/readyz`);
  expect(status).toBe(503);
  expect(JSON.parse(text)).toMatchObject({ ready: false, reason: expect.stringContaining('sinks are not') as string });
  expect(await logged('readiness could not be found out')).toMatchObject({ level: 50 });
});
