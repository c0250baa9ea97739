// @module-tag slow
import { readdirSync, statSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { redisAvailable, startRedis } from '@catchword/testing/redis';
import { Redis } from 'ioredis';
import { expect, it, onTestFinished } from 'vitest';
import { residentBytes } from '../../bench/process.ts';
import { openStore } from '../../src/store/store.ts';
import { get, isEvent, openReader } from '../http/reader.ts';
import { prepareAll } from '../relay/target-kinds.ts';
import { addressOf, start } from '../support/cli.ts';
import { catalogOf, truthOf, withoutWithdrawn } from '../support/mirror.ts';
import { place } from '../support/place.ts';

/*
 * A daemon with Redis and all sinks, readers of its page, figures and stream, and a source that changes all the time:
 * `SOAK_MINUTES=120 npx vitest run test/ops/soak.test.ts` prints its figures each minute.
 */

const MINUTES = Number(process.env.SOAK_MINUTES ?? 0.25);
/** After so long, caches are full and the change log is pruned. */
const WARM_MINUTES = 10;
const MINUTE_MS = 60_000;
const MB = 2 ** 20;

const round = (value: number): number => Math.round(10 * value) / 10;

it.skipIf(!redisAvailable)(
  'a daemon with all sinks stays as small as it was',
  { tags: ['stores'], timeout: (MINUTES + 10) * MINUTE_MS },
  async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.stop());
    const { sandbox, directory, db, settings } = await place({ items: 5_000 });
    const { targets, settings: sinks } = await prepareAll(({ variants }) => variants[0] ?? '');
    const env = {
      ...settings,
      ...sinks,
      REDIS_URL: redis.url,
      CATCHWORD_HTTP_PORT: '0',
      CATCHWORD_DELTA_CRON: '*/10 * * * * *',
      CATCHWORD_FULL_CRON: '*/15 * * * *',
      CATCHWORD_LOG_RETENTION: '5m',
      LOG_LEVEL: 'info',
    };
    const daemon = start(['daemon'], env, directory);
    const url = await addressOf(daemon);
    await daemon.shows('run complete');
    const keys = new Redis(redis.url);
    onTestFinished(() => keys.disconnect());
    const store = openStore(db);
    onTestFinished(() => store.close());

    let isOver = false;
    let seen = 0;
    const reader = await openReader(`${url}/api/changes/stream`);
    const reading = (async () => {
      for await (const block of reader.blocks()) if (isEvent(block)) seen++;
    })();
    const changing = (async () => {
      for (let seed = 1; !isOver; seed++) {
        sandbox.catalog.mutate({ create: 1, update: 8, remove: 1, seed });
        await delay(1_000);
      }
    })();
    const asking = (async () => {
      while (!isOver) {
        for (const path of ['/', '/metrics', '/api/status']) expect((await get(url + path)).status, path).toBe(200);
        await delay(5_000);
      }
    })();

    const pid = daemon.child.pid ?? Number.NaN;
    const figuresAt = async (minute: number) => ({
      minute: round(minute),
      rssMb: round(residentBytes(pid) / MB),
      descriptors: readdirSync(`/proc/${pid}/fd`).length,
      walMb: round(statSync(`${db}-wal`).size / MB),
      mirrorMb: round(statSync(db).size / MB),
      redisKeys: await keys.dbsize(),
      changes: store.changes.lastSeq(),
    });
    type Figures = Awaited<ReturnType<typeof figuresAt>>;
    const all: Figures[] = [];
    const startedAt = performance.now();
    const elapsed = (): number => (performance.now() - startedAt) / MINUTE_MS;
    while (elapsed() < MINUTES) {
      await Promise.race([delay(Math.min(MINUTE_MS, (MINUTES * MINUTE_MS) / 3)), daemon.ended, asking]);
      const figures = await figuresAt(elapsed());
      all.push(figures);
      process.stdout.write(`${JSON.stringify(figures)}\n`);
    }
    isOver = true;
    await Promise.all([changing, asking]);

    // The next deltas bring the last changes.
    const timeout = 3 * MINUTE_MS;
    await expect.poll(async () => withoutWithdrawn(catalogOf(db)), { timeout }).toEqual(await truthOf(sandbox.url));
    const last = () => store.changes.lastSeq();
    const behind = () =>
      store.sinks.list().flatMap(({ name, cursor }) => (cursor === last() ? [] : `${name} ${cursor}`));
    await expect.poll(behind, { timeout }).toEqual([]);
    const bodies = new Map([...catalogOf(db)].map(([vbid, body]) => [vbid, JSON.parse(body) as unknown]));
    for (const { kind, target } of targets) expect((await target.read()).products, kind.name).toEqual(bodies);
    expect(seen).toBeGreaterThan(0);
    expect(await daemon.stop()).toMatchObject({ code: 0 });
    await reading;

    const warm = all.filter(({ minute }) => minute >= WARM_MINUTES);
    const third = Math.floor(warm.length / 3);
    if (third === 0) return;
    const largest = (some: readonly Figures[], name: keyof Figures): number =>
      Math.max(...some.map((figures) => figures[name]));
    const margins = { rssMb: 1.1, descriptors: 1.1, walMb: 1.5, mirrorMb: 1.5, redisKeys: 1.5 } as const;
    for (const name of Object.keys(margins) as (keyof typeof margins)[]) {
      const [before, after] = [largest(warm.slice(0, third), name), largest(warm.slice(-third), name)];
      expect(after, `${name}: ${before} at first`).toBeLessThanOrEqual(before * margins[name]);
    }
  },
);
