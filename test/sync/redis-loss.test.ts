// @module-tag slow

import { redisAvailable, startRedis } from '@catchword/testing/redis';
import { Redis } from 'ioredis';
import { describe, expect, it, onTestFinished } from 'vitest';
import { run, start, startService } from '../support/cli.ts';
import { catalogOf, expectExactLog, truthOf } from '../support/mirror.ts';
import { place } from '../support/place.ts';

/** Minimum requests of a full load. */
const WINDOWS = 200;

async function redisPlace() {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  const more = { REDIS_URL: server.url, CATCHWORD_PER_PAGE: '100', CATCHWORD_CONCURRENCY: '4', LOG_LEVEL: 'info' };
  return { server, ...(await place({ items: WINDOWS * 100, latencyMs: 50 }, more)) };
}

describe.skipIf(!redisAvailable)('with Redis', { tags: ['stores'] }, () => {
  it.each(['flushed', 'killed'])(
    'a load through Redis is complete and exact when Redis is %s meanwhile',
    async (what) => {
      const { server, sandbox, directory, db, settings } = await redisPlace();
      const loading = start(['sync', '--full', '--json'], settings, directory);
      await expect.poll(() => sandbox.requests.length, { interval: 5 }).toBeGreaterThan(WINDOWS / 4);
      if (what === 'flushed') {
        const admin = new Redis(server.url);
        await admin.flushall();
        await admin.quit();
      } else {
        await server.kill('SIGKILL');
      }
      // Redis was in use.
      expect(sandbox.requests.length).toBeLessThan(WINDOWS);
      if (what === 'killed') await server.restart();
      const { code, stdout } = await loading.ended;
      expect(code).toBe(0);
      expect(JSON.parse(stdout)).toMatchObject({ state: 'complete', created: 20_000 });
      expect(catalogOf(db)).toEqual(await truthOf(sandbox.url));
      expect(expectExactLog(db)).toBe(20_000);
    },
  );

  it('a load through Redis is shared by a scheduler, a keeper and two fetchers', async () => {
    const { sandbox, directory, db, settings } = await redisPlace();
    const without = { ...settings, CATCHWORD_DB: '/nowhere/needed.db' };
    const roles = ['keeper', 'fetcher', 'fetcher'].map((role) =>
      start([role], role === 'keeper' ? settings : without, directory),
    );
    const [keeper] = roles;
    await keeper?.shows('run complete');
    expect(catalogOf(db)).toEqual(await truthOf(sandbox.url));

    sandbox.catalog.mutate({ create: 7, update: 11, seed: 2 });
    const every = { CATCHWORD_DELTA_CRON: '* * * * * *', CATCHWORD_FULL_CRON: 'off' };
    const scheduler = start(['scheduler'], { ...settings, ...every }, directory);
    await keeper?.shows('"created":7,"updated":11');
    for (const role of [scheduler, ...roles]) role.child.kill('SIGTERM');
    const ends = await Promise.all([scheduler, ...roles].map((role) => role.ended));
    expect(ends.map(({ code }) => code)).toEqual([0, 0, 0, 0]);
    expect(catalogOf(db)).toEqual(await truthOf(sandbox.url));
    expectExactLog(db);
  });

  it('a load through Redis reads each page once, although another keeper of the mirror waits', async () => {
    const { sandbox, directory, db, settings } = await redisPlace();
    const off = { CATCHWORD_FULL_CRON: 'off', CATCHWORD_DELTA_CRON: 'off' };
    const roles = [1, 2].map(() => startService(['keeper'], { ...settings, ...off }, directory));
    for (const keeper of roles) await keeper.shows('"msg":"started"');
    const fetcher = startService(['fetcher'], settings, directory);
    await Promise.race(roles.map((keeper) => keeper.shows('run complete')));
    for (const role of [...roles, fetcher]) expect((await role.stop()).code).toBe(0);
    expect(catalogOf(db)).toEqual(await truthOf(sandbox.url));
    const paths = sandbox.requests.map(({ path }) => path);
    expect(paths.filter((path, at) => paths.indexOf(path) !== at)).toEqual([]);
  });

  it('a role reports a missing setting', async () => {
    const { directory, settings } = await redisPlace();
    const { REDIS_URL: _url, ...without } = settings;
    const lacking = await run(['fetcher'], { ...without, LOG_LEVEL: 'error' }, directory);
    expect(lacking).toMatchObject({ code: 2, stdout: '' });
    expect(JSON.parse(lacking.stderr)).toMatchObject({
      reason: expect.stringMatching(/^REDIS_URL is not set/),
      hint: expect.any(String),
    });
    const wrong = { ...without, REDIS_URL: 'redis://:hunter2@127.0.0.1:1', LOG_LEVEL: 'error' };
    const gone = await run(['keeper'], wrong, directory);
    expect(gone.code).toBe(1);
    expect(gone.stderr).toContain('127.0.0.1:1');
    expect(gone.stderr).not.toContain('hunter2');
  });
});
