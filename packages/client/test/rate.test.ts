// @module-tag service

import { createPauses } from '@catchword/base/clock';
import { paceOf, type Rate } from '@catchword/pace/pace';
import { createPacer, type Reserve } from '@catchword/pace/pacer';
import type { Wait } from '@catchword/pace/waiting-line';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { NEVER } from './connection.ts';

/** A clock whose sleeps end late by what `lateMs` says, one sleeper at a time. */
function lateClock(lateMs: () => number | Promise<number> = () => 0) {
  let now = 1_000_000;
  return {
    now: () => now,
    random: () => 0,
    sleep: async (ms: number): Promise<void> => {
      const late = lateMs();
      const waited = ms + (typeof late === 'number' ? late : await late);
      now += waited;
    },
    putBack: (ms: number): void => {
      now -= ms;
    },
  };
}

/** A pacer with a request each `intervalMs`, and its clock. */
function paced(intervalMs: number, more: Partial<Parameters<typeof createPacer>[0]> = {}, clock = lateClock()) {
  return { clock, pacer: createPacer({ pace: { intervalMs, slackMs: 0 }, clock, ...more }) };
}

const RATES: readonly Rate[] = [
  { requests: 50, windowMs: 60_000 },
  { requests: 600, windowMs: 60_000 },
  { requests: 10, windowMs: 1_000 },
  { requests: 500, windowMs: 1_000 },
];

async function grants(rate: Rate, count: number, lateMs: () => number): Promise<number[]> {
  const clock = lateClock(lateMs);
  const pacer = createPacer({ pace: paceOf(rate), clock });
  const times: number[] = [];
  for (let index = 0; index < count; index++) {
    await pacer.acquire(NEVER);
    times.push(clock.now());
  }
  return times;
}

/** The largest number of times in any window. */
function busiest(times: readonly number[], windowMs: number): number {
  let first = 0;
  let most = 0;
  for (const [index, time] of times.entries()) {
    while ((times[first] ?? 0) <= time - windowMs) first++;
    most = Math.max(most, index - first + 1);
  }
  return most;
}

it.each(RATES)('the pace never grants more than $requests in $windowMs ms, however late timers are', async (rate) => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat({ max: 2 * rate.windowMs }), { minLength: 1 }), async (lateness) => {
      let turn = 0;
      const times = await grants(rate, 2 * rate.requests, () => (lateness[turn++ % lateness.length] ?? 0) / 40);
      expect(busiest(times, rate.windowMs)).toBeLessThanOrEqual(rate.requests);
    }),
    { numRuns: 30 },
  );
});

it('the pace loses no more than 3% at 600 a minute, with timers a few milliseconds late', async () => {
  const times = await grants({ requests: 600, windowMs: 60_000 }, 1_000, () => 5);
  expect((times.at(-1) ?? 0) - (times[0] ?? 0)).toBeLessThan(103_000);
});

it('the pace grants nothing during a block, and then one request after the other', async () => {
  const { clock, pacer } = paced(100);
  const until = clock.now() + 5_000;
  const waiting = [1, 2, 3].map(() => pacer.acquire(NEVER).then(() => clock.now()));
  void pacer.heed({ code: 'SOURCE_UNAVAILABLE', retryAfterMs: until - clock.now() });
  const [first = 0, second = 0, third = 0] = await Promise.all(waiting);
  expect(second).toBeGreaterThanOrEqual(Math.max(until, first + 100));
  expect(third).toBeGreaterThanOrEqual(second + 100);
});

it('the pace keeps a block without a limit, and a block from before the start', async () => {
  const clock = lateClock();
  const until = clock.now() + 7_000;
  const pauses = createPauses();
  pauses.note({ since: clock.now() - 7_000, until });
  const pacer = createPacer({ pace: null, clock, pauses });
  await pacer.acquire(NEVER);
  expect(clock.now()).toBeGreaterThanOrEqual(until);
});

it('the pace continues after an aborted request', async () => {
  const { pacer } = paced(10);
  const gone = new AbortController();
  gone.abort(new Error('gave up'));
  const results = await Promise.allSettled([pacer.acquire(NEVER), pacer.acquire(gone.signal), pacer.acquire(NEVER)]);
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
});

it('the pace gives the turn of an unwanted request to the next', async () => {
  const { clock, pacer } = paced(100);
  await pacer.acquire(NEVER);
  const turns = [pacer.acquire(NEVER, { isWanted: () => clock.now() === 1_000_000 }), pacer.acquire(NEVER)];
  expect(await Promise.all(turns)).toEqual([false, true]);
  expect(clock.now()).toBe(1_000_100);
});

it('the pace gives turns to urgent requests first', async () => {
  const { pacer } = paced(100);
  await pacer.acquire(NEVER);
  const order: string[] = [];
  const ask = (name: string, isUrgent: boolean) => pacer.acquire(NEVER, { isUrgent }).then(() => order.push(name));
  await Promise.all([ask('list 1', false), ask('list 2', false), ask('delta 1', true), ask('delta 2', true)]);
  expect(order).toEqual(['delta 1', 'delta 2', 'list 1', 'list 2']);
});

it('the pace rejects an aborted request in the queue at once, and skips its place', async () => {
  let wake = (_lateMs: number): void => {};
  const awake = new Promise<number>((resolve) => {
    wake = resolve;
  });
  const { clock, pacer } = paced(
    100,
    {},
    lateClock(() => awake),
  );
  await pacer.acquire(NEVER);
  const gone = new AbortController();
  const [second, given, third] = [pacer.acquire(NEVER), pacer.acquire(gone.signal), pacer.acquire(NEVER)];
  gone.abort(new Error('gave up'));
  // The second one still sleeps.
  await expect(given).rejects.toThrow('gave up');
  wake(0);
  await Promise.all([second, third]);
  expect(clock.now()).toBe(1_000_200);
});

it('the pace waits one interval or the length of the pause if the clock is put back', async () => {
  const { clock, pacer } = paced(1_200, { pace: { intervalMs: 1_200, slackMs: 6 } });
  await pacer.acquire(NEVER);
  clock.putBack(200_000);
  await pacer.acquire(NEVER);
  expect(clock.now()).toBe(800_000 + 1_200);
  void pacer.heed({ code: 'SOURCE_UNAVAILABLE', retryAfterMs: 60_000 });
  clock.putBack(200_000);
  await pacer.acquire(NEVER);
  // The pause, and at most one interval after it.
  expect(clock.now()).toBe(600_000 + 1_200 + 60_000 + 1_200);
});

it('the pace reports a long pause once, with its end, and a slow pace once', async () => {
  const waits: Wait[] = [];
  const { clock, pacer } = paced(10_000, { onWait: (wait) => waits.push(wait) });
  for (let request = 0; request < 3; request++) await pacer.acquire(NEVER);
  const until = clock.now() + 60_000;
  void pacer.heed({ code: 'SOURCE_UNAVAILABLE', retryAfterMs: until - clock.now() });
  await pacer.acquire(NEVER);
  expect(waits).toEqual([
    { reason: 'pace', ms: 10_000, until: 1_010_000 },
    { reason: 'asked', ms: 60_000, until },
  ]);
});

it('the pace does not wait for a block that is longer than the patience', async () => {
  const { clock, pacer } = paced(100);
  const waiting = [1, 2, 3].map(() => pacer.acquire(NEVER, { patienceMs: 60_000 }));
  void pacer.heed({ code: 'SOURCE_UNAVAILABLE', retryAfterMs: 3_600_000 });
  const late = pacer.acquire(NEVER, { patienceMs: 60_000 });
  const results = await Promise.allSettled([...waiting, late]);
  for (const result of results) {
    expect(result).toMatchObject({ reason: { code: 'SOURCE_RATE_LIMITED', retryAfterMs: 3_600_000 } });
  }
  expect(clock.now()).toBe(1_000_000);
  await pacer.acquire(NEVER);
  expect(clock.now()).toBe(4_600_000);
});

/** Reservations as a mirror stores them. */
function shared() {
  let next = 0;
  let asked = 0;
  const reserve: Reserve = (now, { intervalMs, slots }) => {
    asked++;
    if (next > now) return next;
    next = now + slots * intervalMs;
    return now;
  };
  return { reserve, asked: () => asked };
}

it.each(RATES)('a shared pace is $requests in $windowMs ms for three processes together', async (rate) => {
  const clock = lateClock(() => 1);
  const { reserve } = shared();
  const times: number[] = [];
  const pacers = [1, 2, 3].map(() => createPacer({ pace: paceOf(rate), clock, reserve }));
  for (let request = 0; request < 2 * rate.requests; request++) {
    await pacers[request % 3]?.acquire(NEVER);
    times.push(clock.now());
  }
  expect(busiest(times, rate.windowMs)).toBeLessThanOrEqual(rate.requests);
});

it('a shared pace reserves one slot at a time if it is slow, and several if it is fast', async () => {
  const counts: number[] = [];
  for (const requests of [10, 500]) {
    const { reserve, asked } = shared();
    const pacer = createPacer({ pace: paceOf({ requests, windowMs: 1_000 }), clock: lateClock(), reserve });
    for (let request = 0; request < 100; request++) await pacer.acquire(NEVER);
    counts.push(asked());
  }
  expect(counts[0]).toBe(100);
  expect(counts[1]).toBeLessThan(5);
});

it('a shared pace is kept by the process alone if it cannot be shared', async () => {
  let asked = 0;
  const reserve: Reserve = () => {
    asked++;
    return null;
  };
  const { clock, pacer } = paced(100, { reserve });
  for (let request = 0; request < 5; request++) await pacer.acquire(NEVER);
  expect(clock.now()).toBe(1_000_400);
  expect(asked).toBe(1);
});

it('a shared pace rejects at once during a pause of another process that is longer than the patience', async () => {
  const pauses = createPauses();
  const { clock, pacer } = paced(100, { pauses });
  pauses.note({ since: clock.now(), until: clock.now() + 3_600_000 });
  await expect(pacer.acquire(NEVER, { patienceMs: 60_000 })).rejects.toMatchObject({
    code: 'SOURCE_RATE_LIMITED',
    retryAfterMs: 3_600_000,
  });
});
