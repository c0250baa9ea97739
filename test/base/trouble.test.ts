import { setImmediate as turn } from 'node:timers/promises';
import { type Clock, systemClock } from '@catchword/base/clock';
import type { Logger } from '@catchword/base/log';
import { createTrouble } from '@catchword/base/trouble';
import { logOf } from '@catchword/testing/log-of';
import { expect, it } from 'vitest';
import { watchDecisions } from '../../src/operate/decisions/decision-queue.ts';
import { startScheduler } from '../../src/operate/schedule/scheduler.ts';
import { holdLease } from '../../src/store/schema/lease.ts';

const SECOND = 1_000;

/** A trouble whose clock and log the test controls; every sleep passes at once. */
function scene() {
  let now = 1_000_000;
  const clock: Clock = {
    ...systemClock,
    now: () => now,
    sleep: async (ms, signal) => {
      now += ms;
      await turn();
      signal?.throwIfAborted();
    },
  };
  const lines: string[] = [];
  const note =
    (level: string): Logger['warn'] =>
    ({ reason, failures }, message) =>
      void lines.push(`${level} ${message}: ${reason} (${failures})`);
  const log = logOf(note);
  const trouble = createTrouble({ clock, log, wrong: 'fails', over: 'works' });
  return {
    clock,
    log,
    lines,
    trouble,
    pass: (ms: number): void => {
      now += ms;
    },
  };
}

it('a trouble logs a reason when it begins, once a minute with the failures since, and when it is over', () => {
  const { lines, trouble, pass } = scene();
  for (let second = 0; second < 130; second++) {
    for (let times = 0; times < 100; times++) trouble.failed('FULL', { reason: 'FULL of jobs' });
    pass(SECOND);
  }
  expect(lines).toEqual([
    'warn fails: FULL of jobs (1)',
    'warn fails: FULL of jobs (6000)',
    'warn fails: FULL of jobs (6000)',
  ]);
  trouble.passed();
  expect([lines.length, trouble.current()]).toEqual([3, ['FULL']]);
  pass(60 * SECOND);
  expect(trouble.current()).toEqual([]);
  trouble.passed();
  trouble.passed();
  expect(lines.slice(3)).toEqual(['info works: FULL of jobs (13000)']);
  trouble.failed('FULL', { reason: 'FULL again' });
  expect(lines.slice(4)).toEqual(['warn fails: FULL again (1)']);
});

it('a trouble takes a reason that comes and goes for one, and tells two reasons apart', () => {
  const { lines, trouble, pass } = scene();
  for (let second = 0; second < 50; second++) {
    trouble.failed('FULL', { reason: 'FULL' });
    trouble.passed();
    trouble.failed('BUSY', { reason: 'BUSY' });
    pass(SECOND);
  }
  expect(lines).toEqual(['warn fails: FULL (1)', 'warn fails: BUSY (1)']);
});

it('a trouble goes on logging when the clock is put back', () => {
  const { lines, trouble, pass } = scene();
  trouble.failed('FULL', { reason: 'FULL' });
  pass(-3_600 * SECOND);
  trouble.failed('FULL', { reason: 'FULL' });
  expect(lines).toHaveLength(2);
});

function fail(): never {
  throw new Error('locked');
}

/** Waits until ten minutes of the scene have passed. */
async function tenMinutes(clock: Clock): Promise<void> {
  const end = clock.now() + 600 * SECOND;
  while (clock.now() < end) await turn();
}

it('the poll for decisions of operators logs a failure that repeats once a minute', async () => {
  const { clock, log, lines } = scene();
  const watch = watchDecisions({ look: fail }, { clock, log }, () => {});
  await tenMinutes(clock);
  await watch.stop();
  expect(lines.slice(0, 2)).toEqual([
    'warn decisions of operators could not be read: locked (1)',
    'warn decisions of operators could not be read: locked (60)',
  ]);
  expect(lines.length).toBeLessThan(13);
});

it('the scheduler logs a failure that repeats once a minute', async () => {
  const { clock, log, lines } = scene();
  const ticks = { served: () => clock.now() - 86_400_000, forgetAfter: () => {} };
  const schedule = { fullCron: 'off', deltaCron: '* * * * *', timezone: 'UTC' };
  const scheduler = startScheduler({ ...schedule, ticks, clock, log, onDue: async () => fail() });
  await tenMinutes(clock);
  await scheduler.stop();
  const failures = lines.filter((line) => line.includes('could not be requested'));
  expect(failures[0]).toBe('error a scheduled run could not be requested: locked (1)');
  expect(failures.length).toBeLessThan(13);
});

it('a lease logs a failure that repeats once a minute', async () => {
  const { clock, log, lines } = scene();
  const leased = { check: () => {}, write: fail, renew: fail, release: () => {} };
  const lease = { acquire: () => leased, holder: () => null } as unknown as Parameters<typeof holdLease>[0];
  await holdLease(lease, clock, log, () => tenMinutes(clock));
  expect(lines[0]).toBe('warn the lease could not be renewed: locked (1)');
  expect(lines.length).toBeLessThan(13);
});
