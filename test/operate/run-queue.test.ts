import { join } from 'node:path';
import { CatchwordError } from '@catchword/base/errors';
import { tickName } from '@catchword/catalog/tick';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { createHandClock, type HandClock } from '@catchword/testing/test-clocks';
import { pino } from 'pino';
import { expect, it } from 'vitest';
import {
  down,
  filledMirror,
  HOUR,
  MINUTE,
  openElsewhere,
  runQueueOn,
  START,
  scriptedQueue,
  tick,
} from './scripted-runs.ts';

it('carries decisions out when the run under way has ended', async () => {
  const { clock, queue, store, made, ask, release } = scriptedQueue(['hang']);
  queue.submit(tick('delta', START));
  await clock.pass(10);
  ask('undo', '1');
  ask('start', 'full');
  await clock.pass(MINUTE);
  expect(store.actions.asked()).toHaveLength(2);
  release();
  await clock.pass(10);
  expect(store.actions.asked()).toEqual([]);
  expect(store.actions.get(1)).toMatchObject({ outcome: 'run 1 removed nothing that could be restored' });
  expect(made).toEqual([tickName('delta', START), 'full']);
});

it('serves a tick again that was served while the clock was ahead', async () => {
  const { clock, queue, made, lines } = scriptedQueue();
  const later = START + 3 * HOUR;
  clock.set(3 * HOUR);
  queue.submit(tick('delta', later));
  await clock.pass(1000);
  clock.set(-3 * HOUR);
  queue.submit(tick('delta', START + HOUR));
  await clock.pass(3 * HOUR);
  queue.submit(tick('delta', later));
  await clock.pass(1000);
  expect(made).toEqual([tickName('delta', later), tickName('delta', START + HOUR), tickName('delta', later)]);
  expect(lines.filter(({ msg }) => msg.startsWith('the clock was put back'))).toHaveLength(1);
});

it('serves a tick only once', async () => {
  const { clock, queue, made } = scriptedQueue();
  for (const at of [START, START - HOUR, START]) {
    queue.submit(tick('delta', at));
    await clock.pass(1000);
  }
  expect(made).toEqual([tickName('delta', START)]);
});

it('keeps one sleep at a time, however often it is woken', async () => {
  const { clock, db } = filledMirror();
  let sleeping = 0;
  let most = 0;
  const counting: HandClock = {
    ...clock,
    sleep: (ms, signal) => {
      most = Math.max(most, ++sleeping);
      return clock.sleep(ms, signal).finally(() => sleeping--);
    },
  };
  const { queue, made } = runQueueOn(db, counting);
  for (let second = 0; second < 20; second++) {
    queue.submit(tick('delta', START + second * 1000));
    await clock.pass(1000);
  }
  expect(made).toHaveLength(20);
  expect(most).toBe(1);
});

it('logs which run covers a skipped tick', async () => {
  const { clock, queue, store, made, lines, release } = scriptedQueue(['hang', down()]);
  const reasons = (): unknown[] => lines.filter(({ msg }) => msg === 'skipped').map(({ reason }) => reason);

  queue.submit(tick('full', START));
  await clock.pass(10);
  queue.submit(tick('delta', START));
  expect(reasons()).toEqual(['the current run covers it']);
  release();
  await clock.pass(10);

  queue.submit(tick('full', START + 1));
  await clock.pass(10);
  queue.submit(tick('delta', START + 1));
  expect(reasons().slice(1)).toEqual(['the retry of a failed run covers it']);
  expect(lines.at(-1)).toMatchObject({ nextTryAt: new Date(store.schedule.retry()?.at ?? 0).toISOString() });
  await clock.pass(HOUR);
  expect(made).toEqual([tickName('full', START), tickName('full', START + 1), 'full']);
  expect(store.schedule.served('delta')).toBe(START + 1);
});

it('waits for another process that works on the mirror, and logs it once', async () => {
  const { clock, db } = filledMirror();
  const { queue, made, lines } = runQueueOn(db, clock);
  const other = openElsewhere(db);
  const held = other.keeperLease.acquire(clock.now());
  const renew = async (): Promise<void> => {
    held.renew(clock.now());
    await clock.pass(15_000);
  };
  queue.submit(tick('full', START));
  for (let times = 0; times < 5; times++) await renew();
  expect(made).toEqual([]);
  expect(lines.map(({ msg, reason }) => [msg, reason])).toEqual([
    ['waiting: another process works on this mirror', 'process 1 on elsewhere is running a run on this mirror'],
  ]);
  held.release();
  await clock.pass(MINUTE);
  expect(made).toEqual([tickName('full', START)]);
});

it('takes over within 30 seconds from a process that says nothing any more', async () => {
  const { clock, db } = filledMirror();
  const { queue, made } = runQueueOn(db, clock);
  const other = openElsewhere(db);
  queue.submit(tick('full', START));
  other.keeperLease.acquire(clock.now());
  await clock.pass(20_000);
  expect(made).toEqual([]);
  await clock.pass(10_000);
  expect(made).toEqual([tickName('full', START)]);
});

it('an empty mirror that another process filled meanwhile is not filled again', async () => {
  const clock = createHandClock(START);
  const db = join(temporaryDirectory(), 'catalog.db');
  const { queue, made } = runQueueOn(db, clock);
  const other = openElsewhere(db);
  const held = other.keeperLease.acquire(clock.now());
  queue.submit({ kind: 'full' });
  await clock.pass(1000);
  held.write((writer) => writer.advanceWatermark(clock.now(), clock.now()));
  held.release();
  await clock.pass(MINUTE);
  expect(made).toEqual([]);
});

it('notes nothing about a run that another process has taken over', async () => {
  const lost = new CatchwordError('LEASE_LOST', 'another process has taken over this mirror');
  const { clock, queue, store, made, lines } = scriptedQueue([lost]);
  queue.submit(tick('full', START));
  await clock.pass(1000);
  expect(made).toHaveLength(1);
  expect(store.schedule.retry()).toBeNull();
  expect(lines.map(({ level }) => level)).not.toContain(pino.levels.values.error);
});
