// @module-tag slow
import type { ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SandboxOptions } from '@catchword/sandbox/options';
import { holdingClock } from '@catchword/testing/holding-clock';
import { redisAvailable, startRedis } from '@catchword/testing/redis';
import { freePort } from '@catchword/testing/server';
import { execute, query } from '@catchword/testing/sqlite';
import Database from 'better-sqlite3';
import { Redis } from 'ioredis';
import { expect, it, onTestFinished } from 'vitest';
import { CLI, runOnTerminal, start, startProcess, startService } from '../support/cli.ts';
import { runHere } from '../support/in-process.ts';
import { catalogOf, expectExactLog, truthOf } from '../support/mirror.ts';
import { place } from '../support/place.ts';

const EVERY_SECOND = { CATCHWORD_DELTA_CRON: '* * * * * *', CATCHWORD_FULL_CRON: 'off', LOG_LEVEL: 'info' };

function ticksOf(db: string): string[] {
  return query<{ tick: string }>(db, 'SELECT tick FROM runs WHERE tick IS NOT NULL').map(({ tick }) => tick);
}

/**
 * Suspends a process between two of its transactions, and ends its leases as if they had expired meanwhile. Within a
 * transaction, no other process could write.
 */
async function suspend(child: ChildProcess, db: string): Promise<void> {
  const sqlite = new Database(db, { timeout: 0 });
  const isSuspended = async () => {
    child.kill('SIGSTOP');
    await sleep(100);
    try {
      sqlite.exec('UPDATE lease SET expires_at = 0');
      return true;
    } catch {
      child.kill('SIGCONT');
      return false;
    }
  };
  await expect.poll(isSuspended).toBe(true);
  sqlite.close();
}

function expectOneRunForEachTick(db: string): void {
  const ticks = ticksOf(db);
  expect(new Set(ticks).size).toBe(ticks.length);
}

/** Two daemons on one mirror: the first one works, the second one stands by. */
async function twoDaemons(options: Partial<SandboxOptions>) {
  const port = String(await freePort());
  const { sandbox, directory, db, settings } = await place(options, { ...EVERY_SECOND, CATCHWORD_HTTP_PORT: port });
  const daemon = () => startService(['daemon'], settings, directory);
  const first = daemon();
  await first.shows('run complete');
  const second = daemon();
  await second.shows('"msg":"standing by"');
  const health = async () => (await fetch(`http://127.0.0.1:${port}/healthz`)).status;
  return { sandbox, db, daemon, first, second, health };
}

it('of two daemons on one mirror, one works, and the other stands by without a port and takes over', async () => {
  const { sandbox, db, daemon, first, second, health } = await twoDaemons({ items: 3_000, churnPerSecond: 5 });
  expect(await health()).toBe(200);
  await first.stop('SIGKILL');
  const before = ticksOf(db).length;
  await second.shows('"msg":"took over"');
  await expect.poll(() => ticksOf(db).length).toBeGreaterThan(before + 1);
  expect(await health()).toBe(200);

  // A daemon that was stopped cleanly also makes room at once, and a third one logs who works.
  const third = daemon();
  await third.shows(`process ${second.child.pid} on`);
  const ended = await second.stop();
  expect(ended.code).toBe(0);
  expect(ended.stderr.match(/standing by/g)).toHaveLength(1);
  await third.shows('"msg":"took over"');
  await third.shows('run complete');
  expect((await third.stop()).code).toBe(0);
  expectOneRunForEachTick(db);
  expectExactLog(db);
  expect(sandbox.requests.every(({ status }) => status === 200)).toBe(true);
});

it('a daemon that was suspended stands by when it resumes, and the one that took over continues', async () => {
  const { db, first, second, health } = await twoDaemons({ items: 100 });
  await suspend(first.child, db);
  await second.shows('the port is not free yet');
  await second.shows('"msg":"took over"');
  await second.shows('run complete');
  first.child.kill('SIGCONT');
  await first.shows('another process has taken over');
  await first.shows('"msg":"standing by"');
  await second.shows('"msg":"listening"');
  expect(await health()).toBe(200);
  for (const one of [first, second]) expect((await one.stop()).code).toBe(0);
  expectOneRunForEachTick(db);
  expectExactLog(db);
});

it.skipIf(!redisAvailable)(
  'a keeper that was suspended leaves the tasks of its successor in Redis',
  { tags: ['stores'] },
  async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.stop());
    const admin = new Redis(redis.url);
    onTestFinished(() => admin.disconnect());
    const { directory, db, settings } = await place({ items: 100 }, { REDIS_URL: redis.url, LOG_LEVEL: 'info' });
    // Without a fetcher, the tasks wait.
    const first = startService(['keeper'], settings, directory);
    await first.shows('run started');
    const second = startService(['keeper'], settings, directory);
    await second.shows('"msg":"started"');
    await suspend(first.child, db);
    await second.shows('run resumed');
    const [queue = ''] = await admin.keys('catchword:fetch-*:prioritized');
    const tasks = await admin.zrange(queue, '0', '-1');
    expect(tasks).not.toEqual([]);
    first.child.kill('SIGCONT');
    await first.shows('waiting: another process works on this mirror');
    expect(await admin.zrange(queue, '0', '-1')).toEqual(tasks);
    for (const keeper of [first, second]) expect((await keeper.stop()).code).toBe(0);
  },
);

it.skipIf(process.geteuid?.() !== 0)(
  'a daemon in a container works at once after the one before was killed',
  async () => {
    // The first one still works when the second one stands by.
    const { clock, release } = holdingClock(20);
    const { sandbox, directory, db, settings } = await place(
      { items: 20_000, latencyMs: 100, clock },
      { CATCHWORD_PER_PAGE: '100', CATCHWORD_CONCURRENCY: '2', CATCHWORD_DELTA_CRON: 'off', LOG_LEVEL: 'info' },
    );
    // As in a container, each has the process id 1 of a namespace of its own, and cannot see the processes of the others.
    const contained = ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc', process.execPath, CLI, 'daemon'];
    const daemon = () => startProcess(contained, { ...settings, CATCHWORD_HTTP_PORT: '0' }, directory);
    const first = daemon();
    await expect.poll(() => sandbox.requests.length).toBeGreaterThan(10);
    const second = daemon();
    await second.shows('"msg":"standing by"');
    await second.stop('SIGKILL');
    expect(await first.stop('SIGKILL')).toMatchObject({ signal: 'SIGKILL' });
    release();
    const next = daemon();
    onTestFinished(() => void next.child.kill('SIGKILL'));
    const lines = await next.shows('run complete');
    expect(lines).toContain('"pid":1,');
    expect(lines).toContain('run resumed');
    expect(lines).not.toMatch(/standing by|waiting|took over/);
    expect(catalogOf(db).size).toBe(20_000);
    next.child.kill('SIGKILL');
    await next.ended;
  },
);

it('a daemon makes up for a week of downtime with one full run, without any deltas', async () => {
  const minute = (new Date().getUTCMinutes() + 30) % 60;
  const { directory, db, settings } = await place(
    { items: 500 },
    { CATCHWORD_FULL_CRON: '0 2 * * *', CATCHWORD_DELTA_CRON: `${minute} * * * *`, LOG_LEVEL: 'info' },
  );
  expect((await runHere(['sync', '--full'], settings, directory)).code).toBe(0);
  const week = Date.now() - 7 * 86_400_000;
  execute(db, `UPDATE runs SET started_at = ${week}`);
  const daemon = startService(['daemon'], settings, directory);
  await daemon.shows('run complete');
  expect((await daemon.stop()).code).toBe(0);
  expect(ticksOf(db)).toEqual([expect.stringMatching(/^full@.*T02:00:00\.000Z$/)]);
  // After a restart nothing is left to make up for.
  const next = startService(['daemon'], settings, directory);
  await next.shows('"msg":"started"');
  expect((await next.stop()).stderr).not.toContain('run started');
});

it('a stopped daemon applies the pages that it has, and the next one resumes', async () => {
  const { sandbox, directory, db, settings } = await place(
    { items: 20_000, latencyMs: 40 },
    { CATCHWORD_PER_PAGE: '100', CATCHWORD_CONCURRENCY: '4', LOG_LEVEL: 'info', CATCHWORD_DELTA_CRON: 'off' },
  );
  const first = startService(['daemon'], settings, directory);
  await expect.poll(() => sandbox.requests.length).toBeGreaterThan(40);
  const ended = await first.stop();
  expect(ended.code).toBe(0);
  expect(ended.stderr).toContain('"msg":"stopped"');
  const applied = catalogOf(db).size;
  expect(applied).toBeGreaterThan(0);
  expect(expectExactLog(db)).toBe(applied);

  const next = startService(['daemon'], settings, directory);
  await next.shows('run resumed');
  await next.shows('run complete');
  expect((await next.stop('SIGINT')).code).toBe(0);
  expect(catalogOf(db)).toEqual(await truthOf(sandbox.url));
  expect(expectExactLog(db)).toBe(20_000);
});

it('of two concurrent loads, one works, and the other names the process that does', async () => {
  const { sandbox, directory, db, settings } = await place(
    { items: 6_000, latencyMs: 100 },
    // So that the first one still works when the second one has started.
    { CATCHWORD_PER_PAGE: '100', CATCHWORD_CONCURRENCY: '2', LOG_LEVEL: '' },
  );
  const first = start(['sync', '--full', '--json'], settings, directory);
  await expect.poll(() => sandbox.requests.length).toBeGreaterThan(2);
  const second = await runHere(['sync', '--full'], settings, directory);
  expect(second).toMatchObject({ code: 1, stdout: '' });
  expect(second.stderr).toMatch(new RegExp(`^error process ${first.child.pid} on .* \\[MIRROR_BUSY\\]\nhint {2}.*\n$`));
  const { code, stdout } = await first.ended;
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ id: 1, state: 'complete', created: 6_000 });
  expect(expectExactLog(db)).toBe(6_000);
});

it.each([
  ['SIGTERM', 143],
  ['SIGHUP', 129],
] as const)('%s stops a load cleanly with %i, and the next one resumes', async (signal, code) => {
  const { sandbox, directory, db, settings } = await place(
    { items: 10_000, latencyMs: 40 },
    { CATCHWORD_PER_PAGE: '100', LOG_LEVEL: '' },
  );
  const first = start(['sync'], settings, directory);
  await expect.poll(() => sandbox.requests.length).toBeGreaterThan(20);
  const ended = await first.stop(signal);
  expect(ended).toMatchObject({ code, stdout: '' });
  expect(ended.stderr).toMatch(/^error interrupted.*\n(hint .*\n)?$/);
  const next = await runHere(['sync', '--json'], settings, directory);
  expect(JSON.parse(next.stdout)).toMatchObject({ id: 1, state: 'complete', created: 10_000 });
  expect(expectExactLog(db)).toBe(10_000);
});

it('a daemon whose terminal closes stops as after SIGTERM', async () => {
  const { directory, db, settings } = await place({ items: 100 }, { LOG_LEVEL: 'info', CATCHWORD_HTTP_PORT: '0' });
  const ended = await runOnTerminal(['daemon'], settings, directory, 'close');
  // Python's way to say that SIGKILL ended it, which it sent itself: Node.js would abort without its terminal.
  expect(ended).toMatchObject({ code: 256 - 9 });
  expect(existsSync(`${db}-wal`)).toBe(false);
  expect(query(db, 'SELECT holder FROM lease WHERE holder IS NOT NULL')).toEqual([]);
});

it('a daemon on a terminal that stays open stops after SIGHUP as after SIGTERM', async () => {
  const { directory, settings } = await place({ items: 100 }, { LOG_LEVEL: 'info', CATCHWORD_HTTP_PORT: '0' });
  expect(await runOnTerminal(['daemon'], settings, directory, 'hangup')).toMatchObject({ code: 0 });
});

it('a load that another process cancels stops', async () => {
  const { sandbox, directory, db, settings } = await place(
    { items: 20_000, latencyMs: 200 },
    // Twenty seconds, enough to start another process.
    { CATCHWORD_PER_PAGE: '100', CATCHWORD_CONCURRENCY: '2', LOG_LEVEL: '' },
  );
  const loading = start(['sync'], settings, directory);
  await expect.poll(() => sandbox.requests.length).toBeGreaterThan(20);
  expect((await runHere(['cancel', '1'], settings, directory)).code).toBe(0);
  const ended = await loading.ended;
  expect(ended).toMatchObject({ code: 1, stdout: '' });
  expect(ended.stderr).toContain('RUN_CANCELLED');
  expect(expectExactLog(db)).toBeLessThan(20_000);
});
