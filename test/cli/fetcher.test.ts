import { join } from 'node:path';
import { redisAvailable, startRedis } from '@catchword/testing/redis';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it, onTestFinished } from 'vitest';
import { run } from '../support/cli.ts';
import { settingsFor } from '../support/mirror.ts';

it.skipIf(!redisAvailable)('a fetcher ends if a setting of its client is wrong', { tags: ['stores'] }, async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const directory = temporaryDirectory();
  const wrong = { REDIS_URL: redis.url, CATCHWORD_TOKEN_STORE: join(directory, 'missing', 'tokens.json') };
  const settings = settingsFor('http://127.0.0.1:1', join(directory, 'catalog.db'), wrong);
  const { code, stderr } = await run(['fetcher'], settings, directory);
  expect(code).toBe(2);
  expect(stderr).toContain(wrong.CATCHWORD_TOKEN_STORE);
});
