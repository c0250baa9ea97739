// @module-tag slow
import { execFile } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { redisAvailable, startRedis } from '@catchword/testing/redis';
import { afterAll, expect, it, onTestFinished } from 'vitest';
import { catalogOf } from '../support/mirror.ts';
import { place } from '../support/place.ts';
import { directoryOfFile, installFirst } from './fresh-project.ts';

const ECOSYSTEM = fileURLToPath(new URL('../../ecosystem.config.cjs', import.meta.url));
const run = promisify(execFile);

interface Listed {
  readonly name: string;
  readonly pid: number;
  readonly pm2_env: {
    readonly status: string;
    readonly restart_time: number;
    readonly exit_code?: number;
    readonly pm_out_log_path: string;
    readonly pm_err_log_path: string;
  };
}

/** The directory that pm2 is installed in and keeps its files in. */
const home = directoryOfFile('pm2');

async function pm2(args: readonly string[], cwd = home): Promise<string> {
  const env = { PATH: process.env.PATH, HOME: home, PM2_HOME: join(home, '.pm2') };
  const { stdout } = await run(process.execPath, [join(home, 'node_modules/pm2/bin/pm2'), ...args], { cwd, env });
  return stdout;
}

async function list(): Promise<Listed[]> {
  const text = await pm2(['jlist']);
  return JSON.parse(text.slice(text.indexOf('['))) as Listed[];
}

installFirst('pm2', () => run('npm', ['install', 'pm2@7', '--prefix', home, '--no-audit', '--no-fund', '--silent']));

afterAll(async () => {
  const file = join(home, '.pm2/pm2.pid');
  if (!existsSync(file)) return;
  const pid = Number(readFileSync(file, 'utf8'));
  await pm2(['kill']);
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended already.
  }
});

/** Starts the processes in a directory with an `.env`, as an operator does. */
async function startIn(more: Record<string, string>): Promise<{ directory: string; db: string }> {
  const { sandbox, directory, db, settings } = await place({ items: 50 }, { LOG_LEVEL: 'info', ...more });
  const text = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`);
  writeFileSync(join(directory, '.env'), text.join(''));
  onTestFinished(async () => {
    await pm2(['delete', 'all']).catch(() => {});
    await sandbox.stop();
  });
  await pm2(['start', ECOSYSTEM], directory);
  return { directory, db };
}

function linesOf(file: string): { level: number; msg: string }[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').trim().split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as { level: number; msg: string });
}

it('pm2 restarts a daemon that a signal killed, and keeps lines that are not errors out of the error log', async () => {
  const { db } = await startIn({});
  const [first, ...others] = await list();
  expect(others).toEqual([]);
  expect(first).toMatchObject({ name: 'catchword-daemon', pm2_env: { status: 'online' } });
  const { pm_out_log_path: out = '', pm_err_log_path: errors = '' } = first?.pm2_env ?? {};
  await expect.poll(() => linesOf(out).map(({ msg }) => msg)).toContain('run complete');
  expect(catalogOf(db).size).toBe(50);
  // pm2 sets a variable that is named like the process.
  expect(readFileSync(out, 'utf8')).not.toContain('is not a setting');
  await pm2(['save']);
  expect(readFileSync(join(home, '.pm2/dump.pm2'), 'utf8')).not.toContain('SANDBOXKEY');

  // A daemon with a wrong setting is not restarted while the other one is.
  await startIn({ CATCHWORD_NAME: 'wrong', CATCHWORD_DELTA_CRON: 'hourly' });
  const wrong = async () => (await list()).find(({ name }) => name === 'catchword-wrong-daemon');
  await expect.poll(wrong).toMatchObject({ pid: 0, pm2_env: { exit_code: 2 } });
  process.kill(first?.pid ?? Number.NaN, 'SIGKILL');
  await expect
    .poll(async () => (await list()).find(({ name }) => name === 'catchword-daemon'))
    .toMatchObject({ pid: expect.not.toBeOneOf([0, first?.pid]), pm2_env: { status: 'online', restart_time: 1 } });
  await expect.poll(() => linesOf(out).filter(({ msg }) => msg === 'started').length).toBe(2);
  expect(linesOf(errors)).toEqual([]);
  expect(await wrong()).toMatchObject({ pid: 0, pm2_env: { restart_time: 0 } });
  expect(linesOf((await wrong())?.pm2_env.pm_err_log_path ?? '')).toMatchObject([
    { level: 60, code: 'CONFIG_INVALID', role: 'daemon', exitCode: 2 },
  ]);
});

it.skipIf(!redisAvailable)(
  'pm2 starts each role as a process with its own name if REDIS_URL is in .env',
  { tags: ['stores'] },
  async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.stop());
    const more = { CATCHWORD_HTTP_PORT: '0', CATCHWORD_SINK_FILE: 'jsonl:changes.jsonl' };
    const { db } = await startIn({ CATCHWORD_NAME: 'books', REDIS_URL: redis.url, ...more });
    const found = await list();
    expect(found.map(({ name, pm2_env }) => `${name} ${pm2_env.status}`).sort()).toEqual(
      ['fetcher', 'fetcher', 'keeper', 'relay', 'scheduler', 'web'].map((verb) => `catchword-books-${verb} online`),
    );
    await expect.poll(() => existsSync(db) && catalogOf(db).size).toBe(50);
  },
);
