import { redisAvailable, startRedis } from '@catchword/testing/redis';
import { createVirtualClock } from '@catchword/testing/test-clocks';
import { expect, it, onTestFinished } from 'vitest';
import { mirrorPacer } from '../../src/sync/shared-pace.ts';
import { openedStore } from '../store/opened-store.ts';
import { run, startService } from '../support/cli.ts';
import { runHere } from '../support/in-process.ts';
import { bodies, rawPlace } from './raw-place.ts';

/** A source of one product, which asks for a pause of so many seconds while `retryAfter` is not null. */
async function busyPlace(retryAfter: number | null, more: Record<string, string> = {}) {
  const { source, ...place } = await rawPlace(bodies(['A']), { LOG_LEVEL: 'warn', ...more });
  const busy = { retryAfter, requests: () => source.requests.length };
  source.instead = () =>
    busy.retryAfter === null ? null : { status: 429, headers: { 'retry-after': String(busy.retryAfter) }, body: '{}' };
  return { busy, ...place };
}

it('a pause that another process was asked for also holds without a rate limit', async () => {
  const store = openedStore();
  const clock = createVirtualClock();
  const options = { config: { rateLimit: null }, clock, tell: () => {} };
  const pacer = mirrorPacer(options, store);
  const { signal } = new AbortController();
  await pacer.acquire(signal);
  const until = clock.now() + 60_000;
  void mirrorPacer(options, openedStore(store.path)).heed({ code: 'SOURCE_RATE_LIMITED', retryAfterMs: 60_000 });
  await pacer.acquire(signal);
  expect(clock.now()).toBeGreaterThanOrEqual(until);
});

it('a pause that doctor is asked for also holds for other commands', async () => {
  const { busy, directory, settings } = await busyPlace(null);
  expect(await runHere(['sync'], settings, directory)).toMatchObject({ code: 0 });
  busy.retryAfter = 7_200;
  expect(await runHere(['doctor'], settings, directory)).toMatchObject({ code: 1 });
  const asked = busy.requests();
  // A process of its own knows only what the mirror holds.
  expect(await run(['sync'], settings, directory)).toMatchObject({ code: 75 });
  for (const args of [['verify'], ['sync', '--dry-run'], ['licenses']]) {
    expect(await runHere(args, settings, directory)).toMatchObject({ code: 75 });
  }
  expect(busy.requests()).toBe(asked);
});

it('sync --now ends the pause of a daemon that waits for it within a run, and says so', async () => {
  const { busy, directory, settings } = await busyPlace(1_800, { LOG_LEVEL: 'info' });
  const daemon = startService(['daemon'], settings, directory);
  await daemon.shows('waiting before the next request');
  busy.retryAfter = null;
  const asking = await runHere(['sync', '--now'], { ...settings, LOG_LEVEL: '' }, directory);
  expect(asking.stderr).toMatch(
    /ending the pause that the source asked for until [\d-]+ [\d:]+ UTC: a running daemon asks the source now/,
  );
  await daemon.shows('"msg":"run complete"');
});

it('sync --now ends the pause of a daemon whose run was rejected, and status does not show a later retry', {
  tags: ['slow'],
}, async () => {
  const { busy, directory, settings } = await busyPlace(7_200, {
    LOG_LEVEL: 'info',
    CATCHWORD_DELTA_CRON: '* * * * * *',
    CATCHWORD_FULL_CRON: 'off',
  });
  const daemon = startService(['daemon'], settings, directory);
  await daemon.shows('"msg":"run stopped"');
  busy.retryAfter = null;
  const asked = await runHere(['sync', '--now'], { ...settings, LOG_LEVEL: '' }, directory);
  expect(asked).toMatchObject({ code: 0 });
  const status = JSON.parse((await runHere(['status', '--json'], settings, directory)).stdout) as Record<
    string,
    unknown
  >;
  expect(status).toMatchObject({ blocked_until: null, next_try: null });
  // Within the 15 seconds after which the daemon checks again.
  await daemon.shows('"msg":"run complete"');
});

it.skipIf(!redisAvailable)(
  'a pause that a fetcher was asked for through Redis is noted in the mirror',
  { tags: ['stores', 'slow'] },
  async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.stop());
    const { busy, directory, settings } = await busyPlace(7_200, { REDIS_URL: redis.url });
    expect(await run(['sync'], settings, directory)).toMatchObject({ code: 75 });
    const { REDIS_URL: _, ...embedded } = settings;
    const asked = busy.requests();
    for (const environment of [settings, embedded]) {
      const paused = await run(['sync'], environment, directory);
      expect(paused).toMatchObject({ code: 75, stderr: expect.stringContaining('--now') as string });
    }
    expect(busy.requests()).toBe(asked);
    busy.retryAfter = null;
    expect(await run(['sync', '--now'], settings, directory)).toMatchObject({ code: 0 });
  },
);
