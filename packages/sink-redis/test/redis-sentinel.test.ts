import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { makeCertificate } from '@catchword/testing/certificate';
import { listen } from '@catchword/testing/listen';
import { redisAvailable, startRedis, startRedisGroup, startSentinel } from '@catchword/testing/redis';
import { freePort } from '@catchword/testing/server';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { Redis } from 'ioredis';
import { describe, expect, it, onTestFinished } from 'vitest';
import { until } from '../../../src/contract/harness.ts';
import { books, configAt, NEVER, temporaryMirror } from '../../../test/relay/feeding.ts';

async function check(url: string): Promise<string> {
  return await (await configAt(url).make()).check(NEVER);
}

/** The numbers of the events in a stream. */
async function eventsAt(url: string, stream: string): Promise<number[]> {
  const client = new Redis(url);
  const entries = await client.xrange(stream, '-', '+');
  client.disconnect();
  return entries.map(([id]) => Number(id.split('-')[1]));
}

/** A primary that wants a password, and a sentinel that wants another one. */
async function guarded() {
  const primary = await startRedis({ args: ['--requirepass', 'of redis'] });
  onTestFinished(() => primary.stop());
  const args = ['--requirepass', 'of the sentinel'];
  const sentinel = await startSentinel({ primary: primary.port, quorum: 1, args });
  onTestFinished(() => sentinel.stop());
  const admin = new Redis(sentinel.port, '127.0.0.1', { password: 'of the sentinel' });
  await admin.call('SENTINEL', 'SET', 'queue-1', 'auth-pass', 'of redis');
  admin.disconnect();
  return { primary, url: `redis+sentinel://:of%20redis@127.0.0.1:${sentinel.port}` };
}

describe.skipIf(!redisAvailable)('a Redis sink behind sentinels', { tags: ['stores'] }, () => {
  it('follows the primary over a failover', { tags: ['slow'] }, async () => {
    const group = await startRedisGroup();
    onTestFinished(() => group.stop());
    const url = `${group.url}/2?stream=shop`;
    const config = configAt(url);
    expect(config.address).toBe(`${group.sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',')}/queue-1/2 shop`);
    expect(await check(url)).toBe('stream shop can be written (nothing was); it has 0 entries');
    const harness = temporaryMirror();
    await harness.resume(config, books(3, 1));
    expect(await eventsAt(`${group.primary.url}/2`, 'shop')).toEqual([1, 2, 3]);
    await until('the replica has them', async () => (await eventsAt(`${group.replica.url}/2`, 'shop')).length === 3);
    await group.primary.kill('SIGKILL');
    await harness.deliver(books(3, 2));
    expect(await eventsAt(`${group.replica.url}/2`, 'shop')).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it('logs in to the sentinels apart from Redis', async () => {
    const { primary, url } = await guarded();
    const harness = temporaryMirror();
    const options = 'stream=shop&sentinel_password=of%20the%20sentinel&maxlen=1000';
    await harness.resume(configAt(`${url}/queue-1?${options}`), books(3, 1));
    expect(await eventsAt(`redis://:of%20redis@127.0.0.1:${primary.port}`, 'shop')).toEqual([1, 2, 3]);
  });

  it.each([
    ['a wrong password of the sentinel', '/queue-1?sentinel_password=wrong', 'misconfigured', /WRONGPASS/],
    [
      'a name that they do not know',
      '/other?sentinel_password=of%20the%20sentinel',
      'misconfigured',
      /ERR No such master/,
    ],
  ])('names %s', async (_name, rest, failure, message) => {
    const { url } = await guarded();
    const failed = check(`${url}${rest}`);
    await expect(failed).rejects.toMatchObject({ failure, message: expect.stringMatching(message) });
  });

  it('names a sentinel that cannot be reached', async () => {
    const failed = check('redis+sentinel://127.0.0.1:1/queue-1');
    await expect(failed).rejects.toMatchObject({
      failure: 'unavailable',
      message: expect.stringMatching(/^Redis: the sentinel: connect ECONNREFUSED 127/),
    });
  });

  it('names a certificate of a sentinel that is not trusted', async () => {
    const certificate = await makeCertificate(temporaryDirectory());
    const sentinel = await startSentinel({ primary: await freePort(), quorum: 1, certificate });
    onTestFinished(() => sentinel.stop());
    await expect(check(`rediss+sentinel://127.0.0.1:${sentinel.port}/queue-1`)).rejects.toMatchObject({
      failure: 'misconfigured',
      message: expect.stringMatching(/^its certificate is not trusted \(DEPTH_ZERO_SELF_SIGNED_CERT\)/),
    });
  });

  it.each(['', '/', '/queue 1', '/queue-1/x', '/queue-1/0/1'])('rejects the path "%s" of sentinels', (path) => {
    expect(() => configAt(`redis+sentinel://127.0.0.1:26379${path}`)).toThrow(/the path is not/);
  });

  it('keeps no connection to a sentinel that says nothing', { tags: ['slow'] }, async () => {
    const open = new Set<Socket>();
    const server = createServer((socket) =>
      open.add(
        socket
          .on('close', () => open.delete(socket))
          .on('error', () => {})
          .resume(),
      ),
    );
    const port = await listen(server);
    const sink = await configAt(`redis+sentinel://127.0.0.1:${port}/queue-1`).make();
    const given = new AbortController();
    const connected = once(server, 'connection');
    const failed = expect(sink.check(given.signal)).rejects.toThrow();
    await connected;
    given.abort();
    await failed;
    await until('nothing is left', () => open.size === 0);
  });
});

it.skipIf(!redisAvailable)(
  'a Redis sink at a node of a cluster says that a cluster is not supported',
  { tags: ['stores'] },
  async () => {
    const nodes = await Promise.all([1, 2].map(() => startRedis({ args: ['--cluster-enabled', 'yes'] })));
    for (const node of nodes) onTestFinished(() => node.stop());
    const [first = nodes[0], second] = nodes;
    const admin = new Redis(String(first?.url));
    onTestFinished(() => admin.disconnect());
    const sentence = /^Redis: it is a node of a cluster, which is not supported; use another Redis: /;
    await expect(check(`${first?.url}?stream=shop`)).rejects.toMatchObject({
      failure: 'misconfigured',
      message: expect.stringMatching(sentence),
    });
    await admin.call('CLUSTER', 'MEET', '127.0.0.1', String(second?.port));
    const other = new Redis(String(second?.url));
    onTestFinished(() => other.disconnect());
    await other.call('CLUSTER', 'ADDSLOTSRANGE', '0', '16383');
    const moved = () => check(`${first?.url}?stream=shop`).catch((error: unknown) => String(error));
    await until('the first node knows the slots of the second', async () => (await moved()).includes('MOVED'));
    await expect(check(`${first?.url}?stream=shop`)).rejects.toMatchObject({
      failure: 'misconfigured',
      message: expect.stringMatching(sentence),
    });
  },
);
