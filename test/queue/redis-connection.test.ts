import { once } from 'node:events';
import { systemClock } from '@catchword/base/clock';
import type { Logger } from '@catchword/base/log';
import { connectRedis, cutRedis } from '@catchword/queue-redis/redis-connection';
import { createRedisTrouble } from '@catchword/queue-redis/redis-trouble';
import { makeCertificate } from '@catchword/testing/certificate';
import { redisAvailable, startRedis } from '@catchword/testing/redis';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { Redis } from 'ioredis';
import { expect, it, onTestFinished, vi } from 'vitest';

function recordedLog() {
  const logged: unknown[][] = [];
  const note: Logger['warn'] = (...line) => void logged.push(line);
  return { logged, log: { debug: note, info: note, warn: note, error: note, fatal: note } };
}

it.skipIf(!redisAvailable)(
  'cutting a connection during its handshake logs nothing, although the server answers with an alert',
  { tags: ['stores'] },
  async () => {
    const redis = await startRedis({ certificate: await makeCertificate(temporaryDirectory()) });
    onTestFinished(() => redis.stop());
    // NODE_EXTRA_CA_CERTS would be read only when a process starts.
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0');
    onTestFinished(() => void vi.unstubAllEnvs());
    const { logged, log } = recordedLog();
    await redis.kill('SIGSTOP');
    const place = { clock: systemClock, log };
    const connection = connectRedis(redis.url, { ...place, trouble: createRedisTrouble(place) }, 'wait');
    const errors: Error[] = [];
    connection.on('error', (error) => errors.push(error));
    await expect.poll(() => connection.stream?.connecting).toBe(false);
    cutRedis(connection);
    await redis.kill('SIGCONT');
    await new Promise((resolve) => connection.once('end', resolve));
    expect(errors).toEqual([expect.objectContaining({ message: expect.stringContaining('alert decode error') })]);
    expect(logged).toEqual([]);
  },
);

it.skipIf(!redisAvailable)(
  'a lost connection is logged as lost although BullMQ has duplicated it',
  { tags: ['stores'] },
  async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.stop());
    const { logged, log } = recordedLog();
    const place = { clock: systemClock, log };
    const connection = connectRedis(redis.url, { ...place, trouble: createRedisTrouble(place) }, 'wait');
    const duplicates = [1, 2].map(() => connection.duplicate());
    for (const duplicate of duplicates) duplicate.on('error', () => {});
    await Promise.all([connection, ...duplicates].map((each) => each.ping()));
    const reconnecting = duplicates.map((duplicate) => once(duplicate, 'reconnecting'));
    for (const duplicate of duplicates) duplicate.disconnect(true);
    await Promise.all(reconnecting);
    await redis.kill('SIGKILL');
    await expect.poll(() => logged.length).toBeGreaterThan(0);
    for (const each of [connection, ...duplicates]) cutRedis(each);
    expect(logged).toEqual([[expect.anything(), 'connection to Redis lost, reconnecting']]);
  },
);

it.skipIf(!redisAvailable)(
  'a connection of BullMQ too logs in with the password that REDIS_URL_FILE has meanwhile',
  { tags: ['stores'] },
  async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.stop());
    const admin = new Redis(redis.url);
    onTestFinished(() => admin.disconnect());
    const at = (password: string) => redis.url.replace('//', `//shop:${password}@`);
    const setPassword = (password: string) =>
      admin.call('ACL', 'SETUSER', 'shop', 'reset', 'on', `>${password}`, '~*', '+@all');
    await setPassword('old-password');
    let written = at('old-password');
    const { log } = recordedLog();
    const place = { clock: systemClock, log, redisUrlAgain: async () => written };
    const connection = connectRedis(written, { ...place, trouble: createRedisTrouble(place) }, 'wait');
    const both = [connection, connection.duplicate()];
    onTestFinished(() => both.forEach(cutRedis));
    await Promise.all(both.map((each) => each.ping()));
    const refused = both.map((each) => once(each, 'error'));
    await setPassword('new-password');
    await admin.call('CLIENT', 'KILL', 'USER', 'shop');
    expect(await Promise.all(refused)).toEqual(
      both.map(() => [expect.objectContaining({ message: expect.stringContaining('WRONGPASS') })]),
    );
    written = at('new-password');
    expect(await Promise.all(both.map((each) => each.ping()))).toEqual(['PONG', 'PONG']);
  },
);
