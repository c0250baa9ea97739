// @module-tag slow
import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
} from 'node:fs';
import { join } from 'node:path';
import { holdingClock } from '@catchword/testing/holding-clock';
import { python, sqlite3, sqliteToolsAvailable } from '@catchword/testing/sqlite-tools';
import { describe, expect, it } from 'vitest';
import { get } from '../http/reader.ts';
import { addressOf, type Running, run, startService } from '../support/cli.ts';
import { runHere } from '../support/in-process.ts';
import { load } from '../support/load.ts';
import { expectExactLog } from '../support/mirror.ts';
import { filled, type Place, place } from '../support/place.ts';

const SERVING = { CATCHWORD_HTTP_PORT: '0', LOG_LEVEL: 'info' };
const EVERY_SECOND = { CATCHWORD_DELTA_CRON: '* * * * * *', CATCHWORD_FULL_CRON: 'off' };
const IDLE = { CATCHWORD_DELTA_CRON: 'off', CATCHWORD_FULL_CRON: 'off' };
const LAST = 'SELECT max(seq) FROM change_log';
const isLinux = process.platform === 'linux';

/** Kills the process when the test ends. */
function begin(args: readonly string[], { settings, directory }: Place, more: Record<string, string> = {}): Running {
  return startService(args, { ...settings, ...more }, directory);
}

/** Deleted files that a process still has open. */
function deletedFilesOf({ child }: Running): string[] {
  const directory = `/proc/${child.pid}/fd`;
  return readdirSync(directory)
    .map((fd) => readlinkSync(join(directory, fd)))
    .filter((path) => path.endsWith('(deleted)'));
}

/** The kinds of lock that a process holds on a file. */
function locksOf({ child }: Running, path: string): string[] {
  const { ino } = statSync(path);
  return readFileSync('/proc/locks', 'utf8')
    .split('\n')
    .map((line) => line.split(/\s+/))
    .filter((words) => words[4] === String(child.pid) && words[5]?.endsWith(`:${ino}`))
    .map((words) => words[3] ?? '');
}

it.skipIf(!sqliteToolsAvailable || !isLinux)(
  'a mirror that other programs read keeps the locks of the daemon: they see new changes, and a kill loses nothing',
  async () => {
    const source = await place({ items: 500, churnPerSecond: 20 }, { ...SERVING, ...EVERY_SECOND });
    const daemon = begin(['daemon'], source);
    await daemon.shows('run complete');
    let seen = 0;
    const first = await lastOf(source);
    for (let reading = 0; reading < 30 || seen < first + 20; reading++) {
      const read = reading % 2 === 0 ? sqlite3 : python;
      const last = Number((await read(source.db, LAST))[0]);
      expect(last).toBeGreaterThanOrEqual(seen);
      seen = last;
    }
    expect(locksOf(daemon, source.db)).toContain('READ');
    expect(deletedFilesOf(daemon)).toEqual([]);
    await daemon.stop('SIGKILL');
    expect(expectExactLog(source.db)).toBeGreaterThanOrEqual(seen);
  },
);

it.skipIf(!sqliteToolsAvailable || !isLinux)(
  'a mirror that other programs read stays protected by the lease: a second load is rejected while the daemon loads',
  async () => {
    const { clock } = holdingClock(50);
    const source = await place(
      { items: 20_000, latencyMs: 200, clock },
      { ...SERVING, ...IDLE, CATCHWORD_PER_PAGE: '100', CATCHWORD_CONCURRENCY: '2' },
    );
    const daemon = begin(['daemon'], source);
    await expect.poll(() => source.sandbox.requests.length).toBeGreaterThan(20);
    for (let reading = 0; reading < 4; reading++) await sqlite3(source.db, LAST);
    const second = await run(['sync'], source.settings, source.directory);
    expect(second).toMatchObject({ code: 1, stdout: '' });
    expect(second.stderr).toContain('MIRROR_BUSY');
    expect(deletedFilesOf(daemon)).toEqual([]);
  },
);

type Happen = (place: Place, backup: string) => unknown;

/** What an operator may do to the file of a running daemon. */
const ACCIDENTS: Record<string, Happen> = {
  deleted: ({ db }) => rmSync(db),
  'deleted with its WAL': ({ db }) => {
    for (const end of ['', '-wal', '-shm']) rmSync(`${db}${end}`);
  },
  'moved away': ({ db }) => renameSync(db, `${db}.old`),
  'left without its WAL': ({ db }) => rmSync(`${db}-wal`),
};

const RESTORES: Record<string, Happen> = {
  'moved over it': ({ db }, backup) => renameSync(backup, db),
  'copied over it, after the WAL was deleted': ({ db }, backup) => {
    for (const end of ['-wal', '-shm']) rmSync(`${db}${end}`);
    copyFileSync(backup, db);
  },
  'copied to its path, after everything was deleted': ({ db }, backup) => {
    for (const end of ['', '-wal', '-shm']) rmSync(`${db}${end}`);
    copyFileSync(backup, db);
  },
};

async function expectReplaced(running: Running): Promise<void> {
  const { code, stderr } = await running.ended;
  expect(stderr).toContain('MIRROR_REPLACED');
  expect(code).toBe(1);
}

async function lastOf({ db }: Place): Promise<number> {
  return Number((await sqlite3(db, LAST))[0]);
}

/** Waits until the log has this change. */
async function reaches(source: Place, seq: number): Promise<void> {
  await expect.poll(() => lastOf(source)).toBeGreaterThan(seq);
}

describe.skipIf(!sqliteToolsAvailable)('with sqlite3', () => {
  it('a daemon whose mirror is compacted or checkpointed by sqlite3 continues', async () => {
    const source = await filled({ items: 2_000, churnPerSecond: 20 });
    const daemon = begin(['daemon'], source, { ...SERVING, ...EVERY_SECOND });
    await daemon.shows('run complete');
    for (const sql of ['PRAGMA wal_checkpoint(TRUNCATE)', 'VACUUM', 'PRAGMA wal_checkpoint(TRUNCATE)']) {
      const before = await lastOf(source);
      await sqlite3(source.db, `PRAGMA busy_timeout = 10000; ${sql}`);
      await reaches(source, before);
    }
    expect((await daemon.stop()).code).toBe(0);
    expectExactLog(source.db);
  });

  it('a daemon whose mirror is deleted, moved away or left without its WAL ends with an error', async () => {
    const sources = [];
    for (const [accident, happen] of Object.entries(ACCIDENTS)) {
      sources.push({ accident, happen, source: await filled({ items: 50 }) });
    }
    // At the same time, because a daemon without runs looks every five seconds.
    const ended = sources.map(async ({ accident, happen, source }) => {
      const daemon = begin(['daemon'], source, { ...SERVING, ...IDLE });
      await daemon.shows('"msg":"started"');
      happen(source, '');
      const { code, stderr } = await daemon.ended;
      return { accident, code, isReplaced: stderr.includes('MIRROR_REPLACED') };
    });
    expect(await Promise.all(ended)).toEqual(sources.map(({ accident }) => ({ accident, code: 1, isReplaced: true })));
  });

  async function expectRestoreIsNoticed(source: Place, daemon: Running, happen: Happen): Promise<void> {
    await reaches(source, 60);
    const backup = join(source.directory, 'backup.db');
    await sqlite3(source.db, `.backup ${backup}`);
    const content = 'SELECT count(*), sum(seq), sum(length(before)) FROM change_log';
    const expected = [...(await sqlite3(backup, content)), 'ok'];
    // Some changes are only in the WAL, and the file has grown.
    await reaches(source, 100);
    await happen(source, backup);
    await expectReplaced(daemon);
    expect([...(await sqlite3(source.db, content)), ...(await sqlite3(source.db, 'PRAGMA integrity_check'))]).toEqual(
      expected,
    );
    // The next daemon continues with the content of the backup.
    const next = await runHere(['sync', '--json'], source.settings, source.directory);
    expect(next.code).toBe(0);
    expectExactLog(source.db);
  }

  it.each(Object.entries(RESTORES))(
    'a daemon whose mirror is restored, a backup %s, ends and leaves it intact',
    async (_name, happen) => {
      const source = await filled({ items: 50, churnPerSecond: 20 });
      await expectRestoreIsNoticed(source, begin(['daemon'], source, { ...SERVING, ...EVERY_SECOND }), happen);
    },
  );

  it.each<[string, Happen]>([
    ['is touched', ({ db }) => utimesSync(db, new Date(), new Date())],
    ['has a backup copied over it, while the WAL holds all of it', ({ db }, backup) => copyFileSync(backup, db)],
  ])('a daemon whose mirror %s continues and loses nothing', async (_name, happen) => {
    const source = await place({ items: 50, churnPerSecond: 20 }, { LOG_LEVEL: 'info' });
    const daemon = begin(['daemon'], source, { ...SERVING, ...EVERY_SECOND });
    await daemon.shows('run complete');
    const backup = join(source.directory, 'backup.db');
    await sqlite3(source.db, `.backup ${backup}`);
    await reaches(source, 60);
    await happen(source, backup);
    await reaches(source, (await lastOf(source)) + 60);
    expect((await daemon.stop()).code).toBe(0);
    expect(await sqlite3(source.db, 'PRAGMA integrity_check')).toEqual(['ok']);
    expectExactLog(source.db);
  });

  it('a daemon whose mirror has a backup copied over it from before the WAL began ends and leaves the backup intact', async () => {
    const source = await filled({ items: 2_000, churnPerSecond: 600 });
    const daemon = begin(['daemon'], source, { ...SERVING, ...EVERY_SECOND });
    await expectRestoreIsNoticed(source, daemon, async ({ db }, backup) => {
      await reaches(source, (await lastOf(source)) + 1_500);
      await sqlite3(db, 'PRAGMA busy_timeout = 10000; PRAGMA wal_checkpoint(TRUNCATE)');
      await reaches(source, (await lastOf(source)) + 100);
      copyFileSync(backup, db);
    });
  });

  it('a daemon whose mirror is restored by sqlite3 itself ends, and does not assign a number to two changes', async () => {
    const source = await filled({ items: 50, churnPerSecond: 20 });
    const backup = join(source.directory, 'backup.db');
    await sqlite3(source.db, `.backup ${backup}`);
    const daemon = begin(['daemon'], source, { ...SERVING, ...EVERY_SECOND });
    await reaches(source, 100);
    await sqlite3(source.db, `.restore ${backup}`);
    await expectReplaced(daemon);
    expect(await sqlite3(source.db, LAST)).toEqual(await sqlite3(backup, LAST));
  });

  it('a daemon whose mirror is replaced is not ready, and ends the roles that only read it or deliver to sinks', async () => {
    const source = await filled({ items: 50 });
    const relay = begin(['relay'], source, { ...SERVING, CATCHWORD_SINK_FILE: 'jsonl:changes.jsonl' });
    await relay.shows('sink is open');
    const moved = `${source.db}.old`;
    for (let isAnswered = false; !isAnswered; ) {
      const web = begin(['web'], source, SERVING);
      const url = await addressOf(web);
      expect((await get(`${url}/readyz`)).status).toBe(200);
      renameSync(source.db, moved);
      const answer = await get(`${url}/readyz`).catch(() => null);
      expect(answer?.status).not.toBe(200);
      await expectReplaced(web);
      // It looks at the file now and then; if it did so just before, it has ended already.
      isAnswered = answer?.text.includes('"ready":false') === true;
      if (isAnswered) expect(answer).toMatchObject({ status: 503, text: expect.stringContaining('MIRROR_REPLACED') });
      else renameSync(moved, source.db);
    }
    await expectReplaced(relay);
  });
});

it('a load ends when its mirror is deleted, before it writes another page', async () => {
  const source = await place(
    { items: 20_000, latencyMs: 200 },
    { CATCHWORD_PER_PAGE: '100', CATCHWORD_CONCURRENCY: '2', LOG_LEVEL: '' },
  );
  const sync = begin(['sync'], source);
  await expect.poll(() => source.sandbox.requests.length).toBeGreaterThan(10);
  for (const end of ['', '-wal', '-shm']) rmSync(`${source.db}${end}`, { force: true });
  await expectReplaced(sync);
  expect(existsSync(source.db)).toBe(false);
  await load({ ...source.settings, CATCHWORD_PER_PAGE: '1000' }, 'full');
});
