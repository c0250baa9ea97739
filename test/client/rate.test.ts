import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createPacer, paceOf, type Rate } from '../../src/client/rate.ts';
import type { Clock } from '../../src/clock.ts';

/** A clock whose sleeps end late by what `lateMs` says, one sleeper at a time. */
function lateClock(lateMs: () => number): Clock {
  let now = 1_000_000;
  return {
    now: () => now,
    random: () => 0,
    sleep: async (ms) => {
      now += ms + lateMs();
    },
  };
}

async function grants(rate: Rate, count: number, lateMs: () => number): Promise<number[]> {
  const clock = lateClock(lateMs);
  const pacer = createPacer({ pace: paceOf(rate), clock });
  const times: number[] = [];
  for (let index = 0; index < count; index++) {
    await pacer.acquire(new AbortController().signal);
    times.push(clock.now());
  }
  return times;
}

/** The most that stand in any window. */
function busiest(times: readonly number[], windowMs: number): number {
  let first = 0;
  let most = 0;
  for (const [index, time] of times.entries()) {
    while ((times[first] ?? 0) <= time - windowMs) first++;
    most = Math.max(most, index - first + 1);
  }
  return most;
}

describe('pace', () => {
  it.each([
    { requests: 50, windowMs: 60_000 },
    { requests: 600, windowMs: 60_000 },
    { requests: 10, windowMs: 1_000 },
    { requests: 500, windowMs: 1_000 },
  ])('never grants more than $requests in $windowMs ms, however late timers are', async (rate) => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat({ max: 2 * rate.windowMs }), { minLength: 1 }), async (lateness) => {
        let turn = 0;
        const times = await grants(rate, 2 * rate.requests, () => (lateness[turn++ % lateness.length] ?? 0) / 40);
        expect(busiest(times, rate.windowMs)).toBeLessThanOrEqual(rate.requests);
      }),
      { numRuns: 30 },
    );
  });

  it('loses no more than 3% at 600 a minute, with timers a few milliseconds late', async () => {
    const times = await grants({ requests: 600, windowMs: 60_000 }, 1_000, () => 5);
    expect((times.at(-1) ?? 0) - (times[0] ?? 0)).toBeLessThan(103_000);
  });

  it('grants nothing before a block has passed, and then one after the other', async () => {
    const clock = lateClock(() => 0);
    const pacer = createPacer({ pace: { intervalMs: 100, slackMs: 0 }, clock });
    const { signal } = new AbortController();
    const until = clock.now() + 5_000;
    const waiting = [1, 2, 3].map(() => pacer.acquire(signal).then(() => clock.now()));
    pacer.blockUntil(until);
    const [first = 0, second = 0, third = 0] = await Promise.all(waiting);
    expect(second).toBeGreaterThanOrEqual(Math.max(until, first + 100));
    expect(third).toBeGreaterThanOrEqual(second + 100);
  });

  it('holds a block without a limit, too, and a block from before the start', async () => {
    const clock = lateClock(() => 0);
    const notBefore = clock.now() + 7_000;
    const pacer = createPacer({ pace: null, clock, notBefore });
    await pacer.acquire(new AbortController().signal);
    expect(clock.now()).toBeGreaterThanOrEqual(notBefore);
  });

  it('does not stall behind one that gave up', async () => {
    const pacer = createPacer({ pace: { intervalMs: 10, slackMs: 0 }, clock: lateClock(() => 0) });
    const gone = new AbortController();
    gone.abort(new Error('gave up'));
    const { signal } = new AbortController();
    const results = await Promise.allSettled([
      pacer.acquire(signal),
      pacer.acquire(gone.signal),
      pacer.acquire(signal),
    ]);
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  });

  it('leaves the turn of one that is not wanted any longer to the next', async () => {
    const clock = lateClock(() => 0);
    const pacer = createPacer({ pace: { intervalMs: 100, slackMs: 0 }, clock });
    const { signal } = new AbortController();
    await pacer.acquire(signal);
    const turns = [pacer.acquire(signal, 60_000, () => clock.now() === 1_000_000), pacer.acquire(signal)];
    expect(await Promise.all(turns)).toEqual([false, true]);
    expect(clock.now()).toBe(1_000_100);
  });

  it('tells one that gives up behind others at once, and its place is free', async () => {
    let wake = (): void => {};
    const awake = new Promise<void>((resolve) => {
      wake = resolve;
    });
    let now = 1_000_000;
    const clock: Clock = {
      now: () => now,
      random: () => 0,
      sleep: async (ms) => {
        await awake;
        now += ms;
      },
    };
    const pacer = createPacer({ pace: { intervalMs: 100, slackMs: 0 }, clock });
    const { signal } = new AbortController();
    await pacer.acquire(signal);
    const gone = new AbortController();
    const [second, given, third] = [pacer.acquire(signal), pacer.acquire(gone.signal), pacer.acquire(signal)];
    gone.abort(new Error('gave up'));
    // The second is still asleep.
    await expect(given).rejects.toThrow('gave up');
    wake();
    await Promise.all([second, third]);
    expect(now).toBe(1_000_200);
  });

  it('does not wait for a block that is longer than the patience, whenever it begins', async () => {
    const clock = lateClock(() => 0);
    const pacer = createPacer({ pace: { intervalMs: 100, slackMs: 0 }, clock });
    const { signal } = new AbortController();
    const waiting = [1, 2, 3].map(() => pacer.acquire(signal, 60_000));
    pacer.blockUntil(clock.now() + 3_600_000);
    const late = pacer.acquire(signal, 60_000);
    const results = await Promise.allSettled([...waiting, late]);
    for (const result of results) {
      expect(result).toMatchObject({ reason: { code: 'SOURCE_RATE_LIMITED', retryAfterMs: 3_600_000 } });
    }
    expect(clock.now()).toBe(1_000_000);
    await pacer.acquire(signal);
    expect(clock.now()).toBe(4_600_000);
  });
});
