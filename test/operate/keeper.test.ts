// @module-tag slow

import { redisAvailable, startRedis } from '@catchword/testing/redis';
import { expect, it, onTestFinished } from 'vitest';
import { startService } from '../support/cli.ts';
import { runHere } from '../support/in-process.ts';
import { goneSink } from './scene.ts';

it.skipIf(!redisAvailable)('the keeper notifies, and the next one repeats nothing', { tags: ['stores'] }, async () => {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  const { directory, settings, events } = await goneSink();
  expect(await runHere(['sync'], settings, directory)).toMatchObject({ code: 0 });
  await startService(['relay'], settings, directory).shows('sink is stopped');
  const withRedis = { ...settings, REDIS_URL: server.url };
  const first = startService(['keeper'], withRedis, directory);
  await first.shows('notification delivered');
  expect(events()).toMatchObject([{ type: 'catchword.episode.began', topic: 'sink:shop' }]);
  await first.stop('SIGKILL');

  const second = startService(['keeper'], withRedis, directory);
  await second.shows('"msg":"started"');
  expect((await second.stop()).stderr).not.toContain('something is wrong');
  expect(events()).toHaveLength(1);
});
