import { type Clock, systemClock } from '@catchword/base/clock';
import { startWorker } from '@catchword/queue-redis/jobs';
import { createRedisTrouble } from '@catchword/queue-redis/redis-trouble';
import { redisAvailable } from '@catchword/testing/redis';
import { createGate } from '@catchword/testing/scripted-source';
import { Queue } from 'bullmq';
import { expect, it, vi } from 'vitest';
import { PASSWORD, recordingLog, startOwn } from './own-redis.ts';

it.skipIf(!redisAvailable).each([
  ['it is full', 'CONFIG SET maxmemory 1', 'CONFIG SET maxmemory 0', /^OOM/],
  ['this user may not wait', 'ACL SETUSER shop -bzpopmin', 'ACL SETUSER shop +bzpopmin', /^NOPERM/],
  ['this user may run no scripts', 'ACL SETUSER shop -@scripting', 'ACL SETUSER shop +@scripting', /^NOPERM/],
  ['it became a replica', 'REPLICAOF 127.0.0.1 1', 'REPLICAOF NO ONE', /^READONLY/],
])(
  'a worker that Redis refuses because %s tries again after growing pauses, logs one line, and goes on',
  { tags: ['stores'] },
  async (...scene) => {
    const [, begin, end, reason] = scene;
    const redis = await startOwn();
    await redis.allow('~* &* +@all');
    const order = (text: string) => redis.admin.call(...(text.split(' ') as [string, ...string[]]));
    const { lines, log } = recordingLog();
    const asked: number[] = [];
    const clock: Clock = {
      ...systemClock,
      random: () => 0.5,
      sleep: (ms, signal) => {
        asked.push(ms);
        return systemClock.sleep(ms / 50, signal);
      },
    };
    const trouble = createRedisTrouble({ clock, log });
    const failures = vi.spyOn(trouble, 'failed');
    const queue = new Queue('own', { connection: redis.admin, prefix: 'catchword' });
    await queue.waitUntilReady();
    await order(begin);
    const done = createGate();
    const worker = startWorker({ redisUrl: redis.shop, source: 'own', clock, log, trouble }, 'own', async () => {
      done.open();
    });
    await expect.poll(() => failures.mock.calls.length).toBeGreaterThan(4);
    // The client pauses by itself between two connections.
    if (!reason.test('READONLY')) expect(asked.slice(0, 3)).toEqual([250, 500, 1_000]);
    expect(trouble.problem()).toMatch(/^problems with Redis: [A-Z]+$/);
    expect(lines).toEqual([
      {
        level: 'warn',
        fields: { what: expect.any(String), reason: expect.stringMatching(reason), failures: 1 },
        message: 'Redis refuses commands, trying again',
      },
    ]);
    await order(end);
    await queue.add('job', {});
    await done.passed;
    await worker.close();
    await queue.close();
    expect(lines).toHaveLength(1);
    expect(JSON.stringify(lines)).not.toContain(PASSWORD);
  },
);
