import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { startSandbox } from '../../src/sandbox/sandbox-server.ts';
import { startService } from '../support/cli.ts';
import { runHere } from '../support/in-process.ts';
import { settingsFor, temporaryDirectory } from '../support/mirror.ts';
import { redisAvailable, startRedis } from '../support/redis.ts';
import { receiver } from './scene.ts';

it.skipIf(!redisAvailable)(
  'the keeper notifies, and the next one repeats nothing',
  async () => {
    const server = await startRedis();
    onTestFinished(() => server.stop());
    const sandbox = await startSandbox({ items: 50 });
    onTestFinished(() => sandbox.stop());
    const { url, events } = await receiver();
    const refusing = await receiver(() => ({ status: 410 }));
    const directory = temporaryDirectory();
    const settings = settingsFor(sandbox.url, join(directory, 'catalog.db'), {
      LOG_LEVEL: 'info',
      CATCHWORD_NOTIFY_HOOK: `webhook+${url}/#allow=private`,
      CATCHWORD_SINK_SHOP: `webhook+${refusing.url}/#allow=private`,
    });
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
  },
  150_000,
);
