import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { openStore } from '../../src/store/store.ts';
import { mirrorPacer } from '../../src/sync/shared-pace.ts';
import { run, startService } from '../support/cli.ts';
import { runHere } from '../support/in-process.ts';
import { serveHttp } from '../support/listen.ts';
import { settingsFor, temporaryDirectory } from '../support/mirror.ts';
import { redisAvailable, startRedis } from '../support/redis.ts';
import { createVirtualClock } from '../support/test-clocks.ts';

interface BusySource {
  readonly url: string;
  /** Seconds in `Retry-After`; null: it answers with a catalog of one product. */
  retryAfter: number | null;
  readonly requests: () => number;
}

async function busySource(retryAfter: number | null): Promise<BusySource> {
  let requests = 0;
  const url = await serveHttp((request, response) => {
    requests++;
    const asked = new URL(request.url ?? '', 'http://localhost').searchParams;
    const items = asked.has('from') || asked.get('page') !== '1' ? [] : [{ vbid: 'A' }];
    response.setHeader('content-type', 'application/json');
    if (source.retryAfter !== null) response.writeHead(429, { 'retry-after': String(source.retryAfter) }).end('{}');
    else response.end(JSON.stringify({ num_items: items.length, page: 1, per_page: 1_000, total_pages: 1, items }));
  });
  const source: BusySource = { url, retryAfter, requests: () => requests };
  return source;
}

function placeOf(source: BusySource, more: Record<string, string> = {}) {
  const directory = temporaryDirectory();
  const db = join(directory, 'catalog.db');
  return { directory, db, settings: settingsFor(source.url, db, more) };
}

it('a pause that another process was asked for also holds without a rate limit', async () => {
  const db = join(temporaryDirectory(), 'catalog.db');
  const [store, other] = [openStore(db), openStore(db)];
  onTestFinished(() => {
    store.close();
    other.close();
  });
  const clock = createVirtualClock();
  const pacer = mirrorPacer({ config: { rateLimit: null }, clock, tell: () => {} }, store);
  const { signal } = new AbortController();
  await pacer.acquire(signal);
  const until = clock.now() + 60_000;
  void mirrorPacer({ config: { rateLimit: null }, clock, tell: () => {} }, other).heed({
    code: 'SOURCE_RATE_LIMITED',
    retryAfterMs: until - clock.now(),
  });
  await pacer.acquire(signal);
  expect(clock.now()).toBeGreaterThanOrEqual(until);
});

it('a pause that doctor is asked for also holds for other commands', async () => {
  const source = await busySource(null);
  const { directory, settings } = placeOf(source);
  expect(await runHere(['sync'], settings, directory)).toMatchObject({ code: 0 });
  source.retryAfter = 7_200;
  expect(await runHere(['doctor'], settings, directory)).toMatchObject({ code: 1 });
  const asked = source.requests();
  // A process of its own knows only what the mirror holds.
  expect(await run(['sync'], settings, directory)).toMatchObject({ code: 75 });
  for (const args of [['verify'], ['sync', '--dry-run'], ['licenses']]) {
    expect(await runHere(args, settings, directory)).toMatchObject({ code: 75 });
  }
  expect(source.requests()).toBe(asked);
});

it('sync --now ends the pause of a daemon that waits for it within a run, and says so', async () => {
  const source = await busySource(1_800);
  const { directory, settings } = placeOf(source, { LOG_LEVEL: 'info' });
  const daemon = startService(['daemon'], settings, directory);
  await daemon.shows('waiting before the next request');
  source.retryAfter = null;
  const asking = await runHere(['sync', '--now'], { ...settings, LOG_LEVEL: '' }, directory);
  expect(asking.stderr).toMatch(
    /ending the pause that the source asked for until [\d-]+ [\d:]+ UTC: a running daemon asks the source now/,
  );
  await daemon.shows('"msg":"run complete"');
});

it('sync --now ends the pause of a daemon whose run was rejected, and status does not show a later retry', async () => {
  const source = await busySource(7_200);
  const { directory, settings } = placeOf(source, {
    LOG_LEVEL: 'info',
    CATCHWORD_DELTA_CRON: '* * * * * *',
    CATCHWORD_FULL_CRON: 'off',
  });
  const daemon = startService(['daemon'], settings, directory);
  await daemon.shows('"msg":"run stopped"');
  source.retryAfter = null;
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

it.skipIf(!redisAvailable)('a pause that a fetcher was asked for through Redis is noted in the mirror', async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const source = await busySource(7_200);
  const { directory, settings } = placeOf(source, { REDIS_URL: redis.url });
  expect(await run(['sync'], settings, directory)).toMatchObject({ code: 75 });
  const { REDIS_URL: _, ...embedded } = settings;
  const asked = source.requests();
  for (const environment of [settings, embedded]) {
    const paused = await run(['sync'], environment, directory);
    expect(paused).toMatchObject({ code: 75, stderr: expect.stringContaining('--now') as string });
  }
  expect(source.requests()).toBe(asked);
  source.retryAfter = null;
  expect(await run(['sync', '--now'], settings, directory)).toMatchObject({ code: 0 });
});
