import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { systemClock } from '@catchword/base/clock';
import { CatchwordError } from '@catchword/base/errors';
import { checkRedis } from '@catchword/queue-redis/check-redis';
import { listen } from '@catchword/testing/listen';
import { collect } from '@catchword/testing/queue-contract';
import { redisAvailable } from '@catchword/testing/redis';
import { createScriptedSource } from '@catchword/testing/scripted-source';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { Redis } from 'ioredis';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openPlace, pages } from '../../packages/queue-redis/test/bull-place.ts';
import { PASSWORD, recordingLog, startOwn } from '../../packages/queue-redis/test/own-redis.ts';
import { addressOf, run, startService } from '../support/cli.ts';
import { settingsFor } from '../support/mirror.ts';

/** The rights that the documents name. */
function documentedRights(): string {
  const text = readFileSync(new URL('../../docs/machines.md', import.meta.url), 'utf8');
  const [, rights] = /^ACL SETUSER catchword on >PASSWORD (.+)$/m.exec(text) ?? [];
  if (rights === undefined) throw new Error('docs/machines.md names no rights');
  return rights;
}

async function refusal(url: string): Promise<unknown> {
  const error = await checkRedis(url).catch((thrown: unknown) => thrown);
  expect(JSON.stringify(error, Object.getOwnPropertyNames(error))).not.toContain(PASSWORD);
  return error;
}

describe.skipIf(!redisAvailable)('with Redis', { tags: ['stores'] }, () => {
  it.each([
    ['runs no scripts for this user', '~* +@all -@scripting', /NOPERM.*eval/],
    ['does not let this user wait', '~* +@all -bzpopmin', /NOPERM.*bzpopmin/],
    ['does not let scripts of this user write', '~* +@all -hset -hmset', /can't run this command/],
    ['keeps its keys from this user', '~other:* +@all', /NOPERM.*keys/],
    ['does not tell this user the time', `~catchword:* ${documentedRights()} -time`, /NOPERM.*time/],
    ['does not let this user ask for its state', '~* +@all -info', /NOPERM.*info/],
  ])('the check of a Redis fails for good if it %s', async (_what, rights, words) => {
    const redis = await startOwn();
    await redis.allow(rights);
    expect(await refusal(redis.shop)).toMatchObject({
      code: 'QUEUE_MISCONFIGURED',
      exitCode: 2,
      message: expect.stringMatching(words),
    });
    expect(await redis.admin.keys('*')).toEqual([]);
  });

  it('the check of a Redis fails for good if its database does not exist', async () => {
    const redis = await startOwn();
    expect(await refusal(`${redis.url}/99`)).toMatchObject({
      code: 'QUEUE_MISCONFIGURED',
      message: expect.stringMatching(/DB index is out of range/),
    });
  });

  it('the check of a Redis fails for good at a replica, at a node of a cluster, and without EVAL', async () => {
    const primary = await startOwn();
    const replica = await startOwn(['--replicaof', '127.0.0.1', String(primary.port)]);
    const node = await startOwn(['--cluster-enabled', 'yes']);
    await node.admin.call('CLUSTER', 'ADDSLOTSRANGE', '0', '16383');
    const renamed = await startOwn(['--rename-command', 'EVAL', '', '--rename-command', 'EVALSHA', '']);
    const found = [await refusal(replica.url), await refusal(node.url), await refusal(renamed.url)];
    const messages = [/READONLY/, /CROSSSLOT/, /unknown command/];
    expect(found).toEqual(
      messages.map((words) =>
        expect.objectContaining({ code: 'QUEUE_MISCONFIGURED', message: expect.stringMatching(words) }),
      ),
    );
  });

  it('the check of a Redis may pass later if it is full, or busy', async () => {
    const full = await startOwn(['--maxmemory', '1']);
    expect(await refusal(full.url)).toMatchObject({
      code: 'QUEUE_UNAVAILABLE',
      exitCode: 1,
      retryable: true,
      message: expect.stringMatching(/refuses a command: OOM/),
    });
    const busy = await startOwn(['--busy-reply-threshold', '1']);
    const other = new Redis(busy.url);
    onTestFinished(() => other.disconnect());
    // A client that connects to a busy server rejects its commands, SCRIPT KILL too.
    await other.ping();
    const running = busy.admin.eval('while true do end', 0).catch(() => {});
    await expect.poll(() => other.ping().catch((error: Error) => error.message)).toMatch(/^BUSY/);
    expect(await refusal(busy.url)).toMatchObject({
      code: 'QUEUE_UNAVAILABLE',
      message: expect.stringMatching(/BUSY/),
    });
    await other.call('SCRIPT', 'KILL');
    await running;
  });

  it('the check of a Redis may pass later while it loads its data', async () => {
    const info = 'redis_version:7.0.0\r\nmaxmemory_policy:noeviction\r\nloading:1\r\n';
    const server = createServer((socket) => {
      socket.on('error', () => {});
      socket.on('data', (data) => {
        for (const command of data.toString().split(/^\*/m).slice(1)) {
          const isInfo = /^info\r$/im.test(command);
          socket.write(
            isInfo ? `$${info.length}\r\n${info}\r\n` : '-LOADING Redis is loading the dataset in memory\r\n',
          );
        }
      });
    });
    expect(await refusal(`redis://127.0.0.1:${await listen(server)}`)).toMatchObject({
      code: 'QUEUE_UNAVAILABLE',
      message: expect.stringMatching(/refuses a command: LOADING/),
    });
  });

  it('the check of a Redis passes with the rights that the documents name, and so does everything else', async () => {
    const redis = await startOwn();
    await redis.allow(documentedRights());
    const { lines, log } = recordingLog();
    const place = await openPlace(redis.shop, { log, intervalMs: 1, isTemporary: true });
    const source = createScriptedSource(systemClock, async ({ window }, nth) => {
      if (window.page === 1 && nth === 1) throw new CatchwordError('SOURCE_UNAVAILABLE', 'once');
      if (window.page === 2 && nth === 1) throw new CatchwordError('SOURCE_RATE_LIMITED', 'wait', { retryAfterMs: 50 });
    });
    await place.fetcher({ read: () => source.read, log });
    const { count } = await collect(place.queue);
    await place.queue.add(pages(9));
    await count(9);
    await place.queue.add(pages(9));
    await place.queue.drop(1);
    await place.queue.forgetPause();
    await place.queue.add([]);
    await place.close();
    expect(lines.filter(({ message }) => message !== 'retrying page')).toEqual([]);
    expect(await redis.admin.acl('LOG')).toEqual([]);
  });

  it('the check of a Redis leaves nothing behind, and fails doctor and the start', { tags: ['slow'] }, async () => {
    const redis = await startOwn();
    await checkRedis(redis.url);
    expect(await redis.admin.keys('*')).toEqual([]);
    await redis.admin.config('SET', 'maxmemory', '1');
    const directory = temporaryDirectory();
    const settings = settingsFor('http://127.0.0.1:1', `${directory}/catalog.db`, { REDIS_URL: redis.url });
    const doctor = await run(['doctor'], settings, directory);
    expect(doctor.stdout).toMatch(/failed Redis +Redis at 127\.0\.0\.1:\d+ refuses a command: OOM/);
    for (const role of ['fetcher', 'keeper']) {
      expect(await run([role], settings, directory)).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('QUEUE_UNAVAILABLE'),
      });
    }
  });
});

it.skipIf(!redisAvailable)('a role says so at /healthz', { tags: ['stores', 'slow'] }, async () => {
  const redis = await startOwn();
  const directory = temporaryDirectory();
  const more = { REDIS_URL: redis.url, CATCHWORD_METRICS_PORT: '0', LOG_LEVEL: 'info' };
  const fetcher = startService(['fetcher'], settingsFor('http://127.0.0.1:1', `${directory}/c.db`, more), directory);
  const health = `${await addressOf(fetcher)}/healthz`;
  const answer = async () => (await fetch(health)).json();
  expect(await answer()).toEqual({ alive: true });
  await fetcher.shows('"msg":"started"');
  await redis.admin.config('SET', 'maxmemory', '1');
  await expect.poll(answer).toEqual({ alive: true, problem: 'problems with Redis: OOM' });
  await redis.admin.config('SET', 'maxmemory', '0');
  await redis.kill('SIGKILL');
  await expect.poll(answer).toMatchObject({ problem: expect.stringContaining('connection') });
  expect(await fetcher.stop()).toMatchObject({ code: 0 });
});
