import { checkRedis } from '@catchword/queue-redis/check-redis';
import { makeCertificate } from '@catchword/testing/certificate';
import { PRIMARY, redisAvailable, startRedis, startSentinel } from '@catchword/testing/redis';
import { freePort } from '@catchword/testing/server';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { Redis } from 'ioredis';
import { describe, expect, it, onTestFinished } from 'vitest';
import { checkedSettings } from '../../src/cli/commands/shared/checked-settings.ts';
import { run } from '../support/cli.ts';
import { catalogOf, settingsFor, truthOf } from '../support/mirror.ts';
import { place } from '../support/place.ts';

/** Parts of every password here. */
const SECRET = /xq4711|Jqh/;

async function refusal(url: string): Promise<unknown> {
  const error = await checkRedis(url).catch((thrown: unknown) => thrown);
  expect(JSON.stringify(error, Object.getOwnPropertyNames(error))).not.toMatch(SECRET);
  return error;
}

it.each([
  'redis://127.0.0.1:6379',
  'rediss://shop:47%2F11@cache.example/2',
  'redis+sentinel://one.example/queue-1',
  'redis+sentinel://one.example:26380,[::1]:26381,10.0.0.3/queue.1_b/15',
  'rediss+sentinel://shop:a,b@one.example,two.example/queue?sentinel_user=watch&sentinel_password=xq4711%40+Jqh',
])('the form of REDIS_URL takes %s', (given) => {
  expect(checkedSettings({ REDIS_URL: given }, 'nothing').redisUrl).toBe(given);
});

it.each([
  ['redis://127.0.0.1:6379/first', /nothing but a database number/],
  ['redis://127.0.0.1:6379/0/1', /nothing but a database number/],
  ['redis+sentinel://127.0.0.1:26379', /name by which the sentinels know the primary/],
  ['redis+sentinel://127.0.0.1:26379/', /name by which the sentinels know the primary/],
  ['redis+sentinel://127.0.0.1:26379/queue/first', /at most a database number/],
  ['redis+sentinel://127.0.0.1:26379/queue 1', /name by which the sentinels know the primary/],
  ['redis+sentinel:///queue', /host of every sentinel/],
  ['redis+sentinel://one.example,/queue', /host of every sentinel/],
  ['redis+sentinel://shop:xq4711@/queue', /must be an address such as .*redis\+sentinel:/],
  ['redis+sentinel://one.example:port,two.example/queue', /must be an address such as .*redis\+sentinel:/],
  ['redis+sentinel://shop:4711/Jqh@one.example/queue', /written as %2F/],
  ['redis+sentinel://shop:47/11@one.example,two.example/queue', /written as %2F/],
  ['redis+sentinel://one.example/queue?sentinel_password=xq4711@Jqh', /written as %2F/],
  ['redis+sentinel://one.example/queue?sentinel_password=xq4711#Jqh', /written as %2F/],
  ['redis+sentinel://one.example/queue?password=xq4711', /options other than sentinel_user and sentinel_password/],
  ['http+sentinel://one.example/queue', /must be an address such as/],
])('the form of REDIS_URL rejects %s', (given, hint) => {
  expect(() => checkedSettings({ REDIS_URL: given }, 'nothing')).toThrow(
    expect.objectContaining({
      code: 'CONFIG_INVALID',
      message: expect.not.stringMatching(SECRET),
      hint: expect.stringMatching(hint),
    }),
  );
});

it('sentinels that cannot be reached are all named in the error', async () => {
  const [one, two] = [await freePort(), await freePort()];
  const url = `redis+sentinel://shop:xq4711@127.0.0.1:${one},127.0.0.1:${two}/queue-1?sentinel_password=Jqh`;
  const refused = (port: number) => `the sentinel at 127.0.0.1:${port} cannot be reached: .*ECONNREFUSED.*`;
  expect(await refusal(url)).toMatchObject({
    code: 'QUEUE_UNAVAILABLE',
    exitCode: 1,
    message: expect.stringMatching(new RegExp(`^${refused(one)}; ${refused(two)}$`)),
  });
});

describe.skipIf(!redisAvailable)('with sentinels', { tags: ['stores'] }, () => {
  /** Starts a primary and one sentinel, both with the given arguments. @returns the part of an address after its login */
  async function behindSentinel(redisArgs: readonly string[] = [], sentinelArgs: readonly string[] = []) {
    const redis = await startRedis({ args: redisArgs });
    onTestFinished(() => redis.stop());
    const sentinel = await startSentinel({ primary: redis.port, quorum: 1, args: sentinelArgs });
    onTestFinished(() => sentinel.stop());
    return { redis, sentinel, hosts: `127.0.0.1:${sentinel.port}` };
  }

  it('Redis behind sentinels is found if one sentinel knows it, and the others are reported', async () => {
    const { redis, hosts } = await behindSentinel();
    const gone = await freePort();
    expect(await checkRedis(`redis+sentinel://127.0.0.1:${gone},${hosts}/${PRIMARY}`)).toEqual({
      primary: `127.0.0.1:${redis.port}`,
      silent: [expect.stringContaining(`127.0.0.1:${gone} cannot be reached`)],
    });
  });

  it('Redis behind sentinels is not found by another name', async () => {
    const { sentinel, hosts } = await behindSentinel();
    expect(await refusal(`redis+sentinel://${hosts}/other`)).toMatchObject({
      code: 'QUEUE_UNAVAILABLE',
      message: `the sentinel at 127.0.0.1:${sentinel.port} does not know other`,
      hint: expect.stringContaining('Correct the name'),
    });
  });

  it('Redis behind sentinels is not mistaken for a sentinel, nor a sentinel for Redis', async () => {
    const { redis, hosts } = await behindSentinel();
    expect(await refusal(`redis+sentinel://127.0.0.1:${redis.port}/${PRIMARY}`)).toMatchObject({
      code: 'QUEUE_MISCONFIGURED',
      message: `the sentinel at 127.0.0.1:${redis.port} is not a sentinel`,
    });
    expect(await refusal(`redis://${hosts}`)).toMatchObject({
      code: 'QUEUE_MISCONFIGURED',
      message: `Redis at ${hosts} is a sentinel`,
    });
  });

  it('Redis behind sentinels is not found if the sentinel is frozen', async () => {
    const { sentinel, hosts } = await behindSentinel();
    await sentinel.kill('SIGSTOP');
    expect(await refusal(`redis+sentinel://${hosts}/${PRIMARY}`)).toMatchObject({ code: 'QUEUE_UNAVAILABLE' });
  });

  it('Redis behind sentinels is named in the error if it is gone, because the sentinels did not promote another', async () => {
    const { redis, hosts } = await behindSentinel();
    await redis.kill('SIGKILL');
    expect(await refusal(`redis+sentinel://shop:xq4711@${hosts}/${PRIMARY}`)).toMatchObject({
      code: 'QUEUE_UNAVAILABLE',
      message: expect.stringMatching(new RegExp(`^Redis at 127\\.0\\.0\\.1:${redis.port} cannot be reached: `)),
    });
  });

  it('Redis behind sentinels gets the password of the address, and the sentinel only its own', async () => {
    const { hosts } = await behindSentinel(['--requirepass', 'xq4711'], ['--requirepass', 'Jqh+1']);
    const options = '?sentinel_password=Jqh+1';
    expect(await checkRedis(`redis+sentinel://:xq4711@${hosts}/${PRIMARY}/3${options}`)).toMatchObject({ silent: [] });
    expect(await refusal(`redis+sentinel://${hosts}/${PRIMARY}${options}`)).toMatchObject({
      code: 'QUEUE_MISCONFIGURED',
      message: expect.stringMatching(/^Redis at .* rejects this user: NOAUTH/),
    });
    expect(await refusal(`redis+sentinel://:xq4711@${hosts}/${PRIMARY}`)).toMatchObject({
      code: 'QUEUE_MISCONFIGURED',
      message: expect.stringMatching(/^the sentinel at .* rejects this user: NOAUTH/),
      hint: 'Put sentinel_user and sentinel_password into REDIS_URL, or correct them there; Redis may also have turned the user off.',
    });
  });
});

it.skipIf(!redisAvailable)(
  'Redis with TLS is shown by doctor, with the sentinels that do not answer',
  { tags: ['stores', 'slow'] },
  async () => {
    const directory = temporaryDirectory();
    const certificate = await makeCertificate(directory);
    const redis = await startRedis({ certificate });
    onTestFinished(() => redis.stop());
    const sentinel = await startSentinel({ primary: redis.port, quorum: 1, certificate });
    onTestFinished(() => sentinel.stop());
    const gone = await freePort();
    const REDIS_URL = `rediss+sentinel://127.0.0.1:${sentinel.port},127.0.0.1:${gone}/${PRIMARY}`;
    const { stdout } = await run(['doctor'], { REDIS_URL, NODE_EXTRA_CA_CERTS: certificate.cert }, directory);
    expect(stdout).toContain(`note   Redis      reachable at 127.0.0.1:${redis.port}, as the sentinels say`);
    expect(stdout).toContain(`the sentinel at 127.0.0.1:${gone} cannot be reached`);
  },
);

it.skipIf(!redisAvailable).each(['rediss', 'rediss+sentinel'])(
  'Redis with TLS is used if NODE_EXTRA_CA_CERTS names its authority (%s)',
  { tags: ['stores', 'slow'] },
  async (scheme) => {
    const { sandbox, directory, db } = await place({ items: 300 });
    const certificate = await makeCertificate(directory);
    const redis = await startRedis({ certificate });
    onTestFinished(() => redis.stop());
    let url = redis.url;
    if (scheme === 'rediss+sentinel') {
      const sentinel = await startSentinel({ primary: redis.port, quorum: 1, certificate });
      onTestFinished(() => sentinel.stop());
      url = `${scheme}://127.0.0.1:${sentinel.port}/${PRIMARY}`;
    }
    const settings = settingsFor(sandbox.url, db, { REDIS_URL: url });

    const refused = await run(['sync', '--full'], { ...settings, LOG_LEVEL: 'error' }, directory);
    expect(refused).toMatchObject({ code: 2, stdout: '' });
    expect(refused.stderr).toMatch(
      /its certificate is not trusted \(DEPTH_ZERO_SELF_SIGNED_CERT\).*\n.*NODE_EXTRA_CA_CERTS/,
    );

    const trusted = { ...settings, NODE_EXTRA_CA_CERTS: certificate.cert };
    const loaded = await run(['sync', '--full', '--json'], trusted, directory);
    expect(loaded).toMatchObject({ code: 0, stderr: '' });
    expect(catalogOf(db)).toEqual(await truthOf(sandbox.url));
  },
);

it.skipIf(!redisAvailable)(
  'doctor names the queues in Redis, and every key there begins with their prefix',
  {
    tags: ['stores', 'slow'],
  },
  async () => {
    const { sandbox, directory, db } = await place({ items: 300 });
    const redis = await startRedis();
    onTestFinished(() => redis.stop());
    const settings = settingsFor(sandbox.url, db, { REDIS_URL: redis.url });
    expect(await run(['sync', '--full'], settings, directory)).toMatchObject({ code: 0 });
    const { stdout } = await run(['doctor'], settings, directory);
    const [, fetch, runs, apply, prefix] =
      /; queues (fetch-\w+), (runs-\w+) and (apply-\w+-)MIRROR, prefix (\w+)$/m.exec(stdout) ?? [];
    const client = new Redis(redis.url);
    onTestFinished(() => client.disconnect());
    const keys = await client.keys('*');
    expect(keys).toContain(`${prefix}:${fetch}:meta`);
    const known = [fetch, runs, apply].map((name) => `${prefix}:${name}`);
    expect(keys.filter((key) => !known.some((start) => key.startsWith(start)))).toEqual([]);
  },
);
