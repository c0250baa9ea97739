import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Clock } from '../../src/base/clock.ts';
import { checkedSettings } from '../../src/cli/commands/shared/checked-settings.ts';
import type { Rate } from '../../src/pace/pace.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { fetcherPace, mirrorPacer } from '../../src/sync/shared-pace.ts';
import { temporaryDirectory } from '../support/mirror.ts';
import { createVirtualClock } from '../support/test-clocks.ts';

const MINUTE_MS = 60_000;
/** Windows of a simulation. */
const WINDOWS = 3;

/** The largest number of times in any window. */
function busiest(times: readonly number[], windowMs: number): number {
  return Math.max(...times.map((from) => times.filter((at) => at >= from && at < from + windowMs).length));
}

/** When fetchers make requests, if they always have one to make. */
function fetchTimes(intervalMs: number, untilMs: number): number[] {
  const times: number[] = [];
  for (let at = 0; at < untilMs; at += intervalMs) times.push(at);
  return times;
}

function openMirror(): Store {
  const store = openStore(join(temporaryDirectory(), 'catalog.db'));
  onTestFinished(() => store.close());
  return store;
}

function optionsFor(rateLimit: Rate | null, clock = createVirtualClock()) {
  return { config: { rateLimit, redisUrl: 'redis://127.0.0.1' }, clock, tell: () => {} };
}

/**
 * The most requests of fetchers and commands in one window. They keep their parts apart, so the busiest window of one may
 * be that of the other.
 */
async function mostTogether(rate: Rate, mirror: Store, clock: Clock): Promise<number> {
  const options = optionsFor(rate, clock);
  const untilMs = WINDOWS * rate.windowMs;
  const byFetchers = fetchTimes(fetcherPace(mirror, options).pace()?.intervalMs ?? Number.NaN, untilMs);
  const pacer = mirrorPacer(options, mirror);
  const byCommands: number[] = [];
  for (const from = clock.now(); clock.now() < from + untilMs; byCommands.push(clock.now())) {
    await pacer.acquire(new AbortController().signal);
  }
  return busiest(byFetchers, rate.windowMs) + busiest(byCommands, rate.windowMs);
}

const LIMITS = Array.from({ length: 59 }, (_, index) => index + 2);

describe('with Redis, fetchers and commands together', () => {
  it('make as many requests in a minute as a limit of 2 to 60 allows, and never more', async () => {
    const [mirror, clock] = [openMirror(), createVirtualClock()];
    for (const requests of LIMITS) {
      expect(await mostTogether({ requests, windowMs: MINUTE_MS }, mirror, clock)).toBe(requests);
    }
  });

  it('keep a limit of 2 to 60 a second in every second', async () => {
    const [mirror, clock] = [openMirror(), createVirtualClock()];
    for (const requests of LIMITS) {
      expect(await mostTogether({ requests, windowMs: 1_000 }, mirror, clock)).toBeLessThanOrEqual(requests);
    }
  });

  it.each(['1/min', '1/s', '0.5/min', '1.9/s'])('cannot keep %s', (CATCHWORD_RATE_LIMIT) => {
    const limit = { CATCHWORD_RATE_LIMIT };
    expect(() => checkedSettings({ ...limit, REDIS_URL: 'redis://127.0.0.1' }, 'nothing')).toThrow(
      expect.objectContaining({
        code: 'CONFIG_INVALID',
        setting: 'CATCHWORD_RATE_LIMIT',
        message: 'CATCHWORD_RATE_LIMIT: fewer than 2 requests cannot be used with REDIS_URL',
        hint: 'Fetchers and commands then count apart. Set at least 2/min; for 1/s, set 60/min.',
      }),
    );
    expect(checkedSettings(limit, 'nothing').rateLimit?.requests).toBeLessThan(2);
  });

  it.each(['2/min', '2/s', 'off'])('can keep %s', (CATCHWORD_RATE_LIMIT) => {
    const settings = { CATCHWORD_RATE_LIMIT, REDIS_URL: 'redis://127.0.0.1' };
    expect(() => checkedSettings(settings, 'nothing')).not.toThrow();
  });

  it.each([
    [1.5, 0.75, 0.75],
    [3.7, 2.7, 1],
    [45.5, 41.5, 4],
  ])('split a learned limit of %s a minute into %s and %s', async (perMinute, fetchers, commands) => {
    const mirror = openMirror();
    mirror.source.learnRate(() => ({ refusedAt: perMinute, perMinute }));
    const options = optionsFor(null);
    const { clock } = options;
    expect(fetcherPace(mirror, options).pace()?.intervalMs).toBeCloseTo((1.01 * MINUTE_MS) / fetchers);
    const pacer = mirrorPacer(options, mirror);
    const from = clock.now();
    for (let request = 0; request < 2; request++) await pacer.acquire(new AbortController().signal);
    expect(clock.now() - from).toBeCloseTo((1.01 * MINUTE_MS) / commands);
  });
});
