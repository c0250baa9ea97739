// @module-tag slow

import { redisAvailable, startRedisGroup } from '@catchword/testing/redis';
import { expect, it, onTestFinished } from 'vitest';
import { startService } from '../support/cli.ts';
import { catalogOf, expectExactLog, truthOf } from '../support/mirror.ts';
import { place } from '../support/place.ts';

/** Minimum requests of a full load. */
const WINDOWS = 200;

// A killed server closes its connections. A stopped one, like a machine without power, leaves them open.
it.skipIf(!redisAvailable).each(['SIGKILL', 'SIGSTOP'] as const)(
  'a load while Redis fails over is complete and exact after the sentinels have promoted the replica (%s)',
  { tags: ['stores'] },
  async (signal) => {
    const group = await startRedisGroup();
    onTestFinished(() => group.stop());
    const more = { REDIS_URL: group.url, CATCHWORD_PER_PAGE: '100', CATCHWORD_CONCURRENCY: '2', LOG_LEVEL: 'info' };
    const { sandbox, directory, db, settings } = await place({ items: WINDOWS * 100, latencyMs: 100 }, more);
    const keeper = startService(['keeper'], settings, directory);
    const fetchers = [1, 2].map(() =>
      startService(['fetcher'], { ...settings, CATCHWORD_DB: '/nowhere.db' }, directory),
    );

    await expect.poll(() => sandbox.requests.length, { interval: 5 }).toBeGreaterThan(WINDOWS / 4);
    await group.primary.kill(signal);
    // Redis was in use.
    expect(sandbox.requests.length).toBeLessThan(WINDOWS);

    const log = await keeper.shows('run complete');
    for (const message of ['connection to Redis lost', 'connection to Redis restored']) {
      expect(log).toContain(`"redis":"queue-1 (sentinels 127.0.0.1:${group.sentinels[0]?.port}, `);
      expect(log).toContain(message);
    }
    expect(catalogOf(db)).toEqual(await truthOf(sandbox.url));

    const ends = await Promise.all([keeper, ...fetchers].map((role) => role.stop()));
    expect(ends.map(({ code }) => code)).toEqual([0, 0, 0]);
    for (const { stderr } of ends) expect(stderr).toMatch(/connection to Redis restored|keep a connection/);
    expect(expectExactLog(db)).toBe(WINDOWS * 100);
  },
);
