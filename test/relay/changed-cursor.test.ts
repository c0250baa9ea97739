import { describe, expect, it } from 'vitest';
import { until } from '../../src/relay/contract/harness.ts';
import { mariadbAvailable, useMariadb } from '../support/mariadb.ts';
import { postgresAvailable, usePostgres } from '../support/postgres.ts';
import { redisAvailable } from '../support/redis.ts';
import { books, fedBefore } from './feeding.ts';
import { useRedis } from './servers.ts';
import { mysqlTarget, postgresTarget, redisKeysTarget } from './targets.ts';

const FILL = 'UPDATE catchword_cursor SET fill = fill + 1, fill_ended = ';

/** Expects that a sink says how little a fill has delivered, and that a replay, which it advises, puts it right. */
async function expectHeldBack(
  scene: Awaited<ReturnType<typeof fedBefore>>,
  change: () => Promise<unknown>,
): Promise<void> {
  const { harness, config, target } = scene;
  await change();
  harness.change(books(1, 2));
  await harness.failed(config);
  expect((await target.read()).products).toEqual(harness.living());
  expect(harness.sink().error).toMatch(
    /has 1 of the 300 products .* nothing is removed.* npx catchword sink replay contract --from beginning/,
  );
  harness.replay(0, true);
  await harness.until('the fill has ended', () => harness.sink().error === null && harness.sink().cursor === 301);
  expect((await target.read()).products).toEqual(harness.living());
}

describe.skipIf(!postgresAvailable)('a changed cursor row of PostgreSQL', { tags: ['stores'] }, () => {
  const postgres = usePostgres();

  it.each(['', '&removals=delete'])(
    'a table of PostgreSQL keeps its rows when another program changed its cursor row (%j)',
    async (options) => {
      const scene = await fedBefore(postgresTarget(postgres.port, options), 300);
      await expectHeldBack(scene, () => postgres.client.query(`${FILL} false`));
    },
  );
});

describe.skipIf(!mariadbAvailable)('a changed cursor row of MariaDB', { tags: ['stores'] }, () => {
  const maria = useMariadb();

  it('a table of MariaDB keeps its rows when another program changed its cursor row', async () => {
    const scene = await fedBefore(mysqlTarget(maria.server.port), 300);
    await expectHeldBack(scene, () => maria.client.query(`${FILL} 0`));
  });
});

describe.skipIf(!redisAvailable)('a changed set of Redis', { tags: ['stores'] }, () => {
  const redis = useRedis();

  it('keys of Redis stay when another program has put them into the set of what a fill left', async () => {
    const scene = await fedBefore(redisKeysTarget(redis.server.port), 300);
    const { prefix } = scene.target;
    await expectHeldBack(scene, async () => {
      for (let n = 0; n < 300; n++) await redis.client.sadd(`${prefix}:\tleft`, `P${n}`);
    });
  });

  it('keys of Redis that somebody deletes during a fill do not count as what it left', async () => {
    const { harness, config, target } = await fedBefore(redisKeysTarget(redis.server.port), 20);
    const { prefix } = target;
    // A fill has noted them, and one has expired since.
    await redis.client.set(`${prefix}:old`, '{}');
    await redis.client.sadd(`${prefix}:\tleft`, 'old', 'expired');
    await harness.resume(config, books(1, 2));
    await until('the fill has ended', async () => (await redis.client.exists(`${prefix}:\tleft`)) === 0);
    expect(harness.sink().error).toBeNull();
    expect((await target.read()).products).toEqual(harness.living());
  });
});
