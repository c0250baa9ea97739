import { readFileSync } from 'node:fs';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { type Clock, systemClock } from '../../src/clock.ts';
import { CatchwordError } from '../../src/errors.ts';
import type { Logger } from '../../src/log.ts';
import { checkRedis } from '../../src/queue/bullmq/check-redis.ts';
import { startWorker } from '../../src/queue/bullmq/jobs.ts';
import { createRedisTrouble } from '../../src/queue/redis-trouble.ts';
import { addressOf, run, startService } from '../support/cli.ts';
import { settingsFor, temporaryDirectory } from '../support/mirror.ts';
import { redisAvailable, startRedis } from '../support/redis.ts';
import { openPlace, pages } from './bull-place.ts';
import { collect } from './contract.ts';
import { createGate, createScriptedSource } from './scripted-source.ts';

const PASSWORD = 'Jqh-4711';

/** The rights that the documents name. */
function documentedRights(): string {
  const text = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8');
  const [, rights] = /^ACL SETUSER catchword on >PASSWORD (.+)$/m.exec(text) ?? [];
  if (rights === undefined) throw new Error('docs/operations.md names no rights');
  return rights;
}

async function startOwn(args: readonly string[] = []) {
  const redis = await startRedis({ args });
  onTestFinished(() => redis.stop());
  const admin = new Redis(redis.url);
  onTestFinished(() => admin.disconnect());
  return {
    ...redis,
    admin,
    /** Gives the user of `shop` exactly these rights. */
    allow: (rights: string) =>
      admin.call('ACL', 'SETUSER', 'shop', 'reset', 'on', `>${PASSWORD}`, ...rights.split(' ')),
    shop: redis.url.replace('//', `//shop:${PASSWORD}@`),
  };
}

async function refusal(url: string): Promise<unknown> {
  const error = await checkRedis(url).catch((thrown: unknown) => thrown);
  expect(JSON.stringify(error, Object.getOwnPropertyNames(error))).not.toContain(PASSWORD);
  return error;
}

interface Line {
  readonly level: keyof Logger;
  readonly fields: Parameters<Logger['warn']>[0];
  readonly message: string;
}

function recordingLog(): { readonly lines: Line[]; readonly log: Logger } {
  const lines: Line[] = [];
  const note =
    (level: keyof Logger): Logger['warn'] =>
    (fields, message) =>
      void (level === 'debug' || lines.push({ level, fields, message }));
  const log = {
    debug: note('debug'),
    info: note('info'),
    warn: note('warn'),
    error: note('error'),
    fatal: note('fatal'),
  };
  return { lines, log };
}

describe.skipIf(!redisAvailable)('the check of a Redis', () => {
  it.each([
    ['runs no scripts for this user', '~* +@all -@scripting', /NOPERM.*eval/],
    ['does not let this user wait', '~* +@all -bzpopmin', /NOPERM.*bzpopmin/],
    ['does not let scripts of this user write', '~* +@all -hset -hmset', /can't run this command/],
    ['keeps its keys from this user', '~other:* +@all', /NOPERM.*keys/],
    ['does not let this user ask for its state', '~* +@all -info', /NOPERM.*info/],
  ])('fails for good if it %s', async (_what, rights, words) => {
    const redis = await startOwn();
    await redis.allow(rights);
    expect(await refusal(redis.shop)).toMatchObject({
      code: 'QUEUE_MISCONFIGURED',
      exitCode: 2,
      message: expect.stringMatching(words),
    });
    expect(await redis.admin.keys('*')).toEqual([]);
  });

  it('fails for good at a replica, at a node of a cluster, and without EVAL', async () => {
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

  it('may pass later if it is full, or busy', async () => {
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
    const running = busy.admin.eval('while true do end', 0).catch(() => {});
    await expect.poll(() => other.ping().catch((error: Error) => error.message)).toMatch(/^BUSY/);
    expect(await refusal(busy.url)).toMatchObject({
      code: 'QUEUE_UNAVAILABLE',
      message: expect.stringMatching(/BUSY/),
    });
    await other.call('SCRIPT', 'KILL');
    await running;
  });

  it('passes with the rights that the documents name, and so does everything else', async () => {
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

  it('leaves nothing behind, and fails doctor and the start', async () => {
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

describe.skipIf(!redisAvailable)('while Redis refuses commands', () => {
  it.each([
    ['it is full', 'CONFIG SET maxmemory 1', 'CONFIG SET maxmemory 0', /^OOM/],
    ['this user may not wait', 'ACL SETUSER shop -bzpopmin', 'ACL SETUSER shop +bzpopmin', /^NOPERM/],
    ['this user may run no scripts', 'ACL SETUSER shop -@scripting', 'ACL SETUSER shop +@scripting', /^NOPERM/],
    ['it became a replica', 'REPLICAOF 127.0.0.1 1', 'REPLICAOF NO ONE', /^READONLY/],
  ])('because %s, a worker tries again after growing pauses, logs one line, and goes on', async (...scene) => {
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
    await expect.poll(() => failures.mock.calls.length, { timeout: 20_000 }).toBeGreaterThan(4);
    // The client pauses by itself between two connections.
    if (!reason.test('READONLY')) expect(asked.slice(0, 3)).toEqual([250, 500, 1_000]);
    expect(trouble.problem()).toMatch(/^Redis refuses commands: [A-Z]+$/);
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
  });

  it('a role says so at /healthz', async () => {
    const redis = await startOwn();
    const directory = temporaryDirectory();
    const more = { REDIS_URL: redis.url, CATCHWORD_METRICS_PORT: '0', LOG_LEVEL: 'info' };
    const fetcher = startService(['fetcher'], settingsFor('http://127.0.0.1:1', `${directory}/c.db`, more), directory);
    const health = `${await addressOf(fetcher)}/healthz`;
    const answer = async () => (await fetch(health)).json();
    expect(await answer()).toEqual({ alive: true });
    await fetcher.shows('"msg":"started"');
    await redis.admin.config('SET', 'maxmemory', '1');
    await expect.poll(answer, { timeout: 20_000 }).toEqual({ alive: true, problem: 'Redis refuses commands: OOM' });
    expect(await fetcher.stop()).toMatchObject({ code: 0 });
  });
});
