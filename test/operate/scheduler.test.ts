import { systemClock } from '@catchword/base/clock';
import type { Service } from '@catchword/base/lifecycle';
import { createLog } from '@catchword/base/log';
import type { RunKind } from '@catchword/catalog/run-types';
import { createHandClock } from '@catchword/testing/test-clocks';
import { expect, it, onTestFinished } from 'vitest';
import { checkCron } from '../../src/operate/schedule/due.ts';
import {
  createRequestedTicks,
  requestLateRuns,
  type ScheduleOptions,
  startRequestedRuns,
  startScheduler,
} from '../../src/operate/schedule/scheduler.ts';

const log = createLog('silent');

/** Starts a service that requests runs, and collects the ticks that it requests. */
function ticksOf(
  start: (options: ScheduleOptions) => Service,
  { isRefused = () => false, ...options }: Partial<ScheduleOptions> & { isRefused?: (kind: RunKind) => boolean },
) {
  const ticks = createRequestedTicks();
  const asked: string[] = [];
  async function onDue(kind: RunKind, tick: string): Promise<void> {
    if (isRefused(kind)) throw new Error('the keeper is unreachable');
    asked.push(tick);
    ticks.requested(kind, tick);
  }
  const schedule = { fullCron: '0 2 * * *', deltaCron: '0 * * * *', timezone: 'UTC', clock: systemClock };
  const service = start({ ...schedule, log, ticks, onDue, ...options });
  onTestFinished(() => service.stop());
  return { asked, ticks };
}

/** Collects the ticks of a schedule that fires every second. */
function ticksIn(timezone: string): readonly string[] {
  return ticksOf(startScheduler, { fullCron: 'off', deltaCron: '* * * * * *', timezone }).asked;
}

it('gives a tick the same name on two machines', async () => {
  const here = ticksIn('UTC');
  const there = ticksIn('Asia/Kolkata');
  // On a busy machine each may miss a tick of the other.
  await expect.poll(() => here.filter((tick) => there.includes(tick)).length).toBeGreaterThan(1);
  for (const ticks of [here, there]) {
    for (const tick of ticks) expect(tick).toMatch(/^delta@\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.000Z$/);
    expect(new Set(ticks).size).toBe(ticks.length);
  }
});

it('accepts only five fields, six fields and off', () => {
  for (const good of ['0 2 * * *', '*/5 * * * * *', 'off']) expect(() => checkCron('X', good)).not.toThrow();
  for (const bad of ['', 'hourly', '0 25 * * *', '* * *', '0 2 30 2 *', '0 22-2 * * *']) {
    expect(() => checkCron('CATCHWORD_FULL_CRON', bad)).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID' }));
  }
});

/** A schedule whose clock the test moves, and the ticks it requested. */
function scheduleAt(start: string, timezone: string, refused?: RunKind) {
  const clock = createHandClock(Date.parse(start));
  let isDown = false;
  const isRefused = (kind: RunKind): boolean => isDown || kind === refused;
  const setDown = (down: boolean): void => {
    isDown = down;
  };
  return { clock, setDown, ...ticksOf(startScheduler, { timezone, clock, isRefused }) };
}

const HOUR = 3_600_000;

it('makes the full run in the night in which its time is skipped', async () => {
  const { clock, asked } = scheduleAt('2026-03-08T05:10:00Z', 'America/New_York');
  await clock.pass(3 * HOUR);
  expect(asked).toEqual([
    // At its start, the newest tick of each kind: the keeper decides whether it was served.
    'full@2026-03-07T07:00:00.000Z',
    'delta@2026-03-08T05:00:00.000Z',
    'delta@2026-03-08T06:00:00.000Z',
    'full@2026-03-08T07:00:00.000Z',
    'delta@2026-03-08T07:00:00.000Z',
    'delta@2026-03-08T08:00:00.000Z',
  ]);
});

it('continues at once when a clock that was ahead is corrected', async () => {
  const { clock, asked } = scheduleAt('2026-11-20T10:10:00Z', 'UTC');
  await clock.pass(HOUR);
  clock.set(5 * HOUR);
  await clock.pass(HOUR);
  expect(asked.at(-1)).toBe('delta@2026-11-20T17:00:00.000Z');
  clock.set(-5 * HOUR);
  await clock.pass(HOUR);
  expect(asked.at(-1)).toBe('delta@2026-11-20T13:00:00.000Z');
});

it('requests a run again if the first request failed', async () => {
  const { clock, asked, setDown } = scheduleAt('2026-11-20T01:10:00Z', 'UTC');
  await clock.pass(1000);
  setDown(true);
  await clock.pass(2 * HOUR);
  setDown(false);
  await clock.pass(60_000);
  expect(asked.slice(2)).toEqual(['full@2026-11-20T02:00:00.000Z', 'delta@2026-11-20T03:00:00.000Z']);
});

it('requests a delta load although the full load before it cannot be requested', async () => {
  const { clock, asked } = scheduleAt('2026-11-20T01:10:00Z', 'UTC', 'full');
  await clock.pass(HOUR);
  expect(asked).toEqual(['delta@2026-11-20T01:00:00.000Z', 'delta@2026-11-20T02:00:00.000Z']);
});

it('requests for a keeper what was due before its start, and later what its scheduler requests late', async () => {
  const clock = createHandClock(Date.parse('2026-11-20T09:59:50Z'));
  const { asked, ticks } = ticksOf(requestLateRuns, { fullCron: 'off', clock });
  await clock.pass(60_000);
  expect(asked).toEqual(['delta@2026-11-20T09:00:00.000Z']);
  await clock.pass(60_000);
  expect(asked.slice(1)).toEqual(['delta@2026-11-20T10:00:00.000Z']);
  await clock.pass(HOUR - 120_000);
  // The scheduler is in time.
  await clock.pass(30_000);
  ticks.requested('delta', 'delta@2026-11-20T11:00:00.000Z');
  await clock.pass(10 * 60_000);
  expect(asked).toHaveLength(2);
});

it('a keeper makes up for ticks that its scheduler requests late, also if one comes every minute', async () => {
  const clock = createHandClock(Date.parse('2026-11-20T09:59:50Z'));
  const { asked } = ticksOf(requestLateRuns, { fullCron: 'off', deltaCron: '* * * * *', clock });
  for (let second = 0; second < 300; second += 30) await clock.pass(30_000);
  expect(asked.length).toBeGreaterThanOrEqual(3);
});

it('starts no run for a keeper before it is due by its own clock', async () => {
  const clock = createHandClock(Date.parse('2026-11-20T09:59:50Z'));
  const started: string[] = [];
  const requested = startRequestedRuns({ clock, log, onDue: async (_kind, tick) => void started.push(tick) });
  onTestFinished(() => requested.stop());
  const ticks = ['delta@2026-11-20T09:00:00.000Z', 'delta@2026-11-20T10:00:00.000Z', 'delta@2026-11-20T11:00:00.000Z'];
  for (const tick of ticks) void requested.request({ kind: 'delta', tick });
  await clock.pass(1_000);
  expect(started).toEqual(ticks.slice(0, 1));
  await clock.pass(9_000);
  expect(started).toEqual(ticks.slice(0, 2));
  await clock.pass(2 * HOUR);
  expect(started).toEqual(ticks.slice(0, 2));
});

it('goes on when a requested run cannot be written', async () => {
  const clock = createHandClock(Date.parse('2026-11-20T10:00:00Z'));
  const busy = (): Promise<never> => Promise.reject(new Error('the mirror is locked'));
  const requested = startRequestedRuns({ clock, log, onDue: busy });
  onTestFinished(() => requested.stop());
  const run = { kind: 'delta', tick: 'delta@2026-11-20T10:00:00.000Z' } as const;
  await expect(requested.request(run)).resolves.toBeUndefined();
});
