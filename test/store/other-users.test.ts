import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { python, sqlite3, sqliteToolsAvailable, UNPRIVILEGED } from '@catchword/testing/sqlite-tools';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import Database from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openMirrorFile } from '../../src/store/file/open-mirror-file.ts';
import { openStore } from '../../src/store/store.ts';
import { getJson } from '../http/reader.ts';
import { addressOf, start, startService } from '../support/cli.ts';
import { runHere } from '../support/in-process.ts';
import { load } from '../support/load.ts';
import { type Place, place } from '../support/place.ts';
import { openedStore } from './opened-store.ts';

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));
const OTHER = { uid: UNPRIVILEGED, gid: UNPRIVILEGED };
/** Whether another user can run the program from this checkout. */
const canBeAnother =
  process.geteuid?.() === 0 && spawnSync(process.execPath, [CLI, '--version'], { ...OTHER, cwd: '/' }).status === 0;
if (!canBeAnother) process.stderr.write('not root: tests as another user are left out\n');

const SHARED = { CATCHWORD_DB_MODE: '0644' };
const COUNT = 'SELECT count(*) FROM catalog';

function modeOf(path: string): number {
  return statSync(path).mode & 0o777;
}

/** A filled mirror in a directory that every user may search. */
async function shared(items: number, more: Record<string, string> = SHARED): Promise<Place> {
  const made = await place({ items, details: true }, more);
  chmodSync(made.directory, 0o755);
  await load(made.settings, 'full');
  return made;
}

/** Runs the program as a user who does not own the mirror. */
function asOther({ db }: Pick<Place, 'db'>, ...args: string[]) {
  const env = { PATH: process.env.PATH ?? '', CATCHWORD_DB: db, CATCHWORD_BASE_URL: 'http://127.0.0.1:9' };
  const { status, stdout, stderr } = spawnSync(process.execPath, [CLI, ...args], {
    ...OTHER,
    env,
    cwd: '/',
    encoding: 'utf8',
  });
  return { code: status, stdout, stderr };
}

it.skipIf(!canBeAnother)('restore by a user who is not the owner says who can', async () => {
  const source = await shared(3, { CATCHWORD_DB_MODE: '0666' });
  chmodSync(source.directory, 0o777);
  const backup = join(source.directory, 'backup.db');
  expect((await runHere(['backup', backup], source.settings, source.directory)).code).toBe(0);
  chmodSync(backup, 0o644);
  const { code, stderr } = asOther(source, 'restore', backup);
  expect(code).toBe(1);
  expect(stderr).toMatch(/catalog\.db has another owner or group, .*\[BACKUP_FAILED\]\nhint {2}Run this as the owner/);
  expect(existsSync(`${source.db}.restoring`)).toBe(false);
});

it('CATCHWORD_DB_MODE gives the mirror, its WAL, its shared memory and new folders their modes', () => {
  const path = join(temporaryDirectory(), 'deep', 'er', 'catalog.db');
  const { sqlite, close } = openMirrorFile(path, { mode: 0o640 });
  sqlite.exec('CREATE TABLE more (a)');
  for (const end of ['', '-wal', '-shm']) expect(modeOf(`${path}${end}`)).toBe(0o640);
  expect(modeOf(dirname(path))).toBe(0o750);
  expect(modeOf(dirname(dirname(path)))).toBe(0o750);
  close();
});

it('CATCHWORD_DB_MODE does not depend on the umask', () => {
  const path = join(temporaryDirectory(), 'new', 'catalog.db');
  const umask = process.umask(0o077);
  onTestFinished(() => {
    process.umask(umask);
  });
  openMirrorFile(path, { mode: 0o664 }).close();
  expect([modeOf(path), modeOf(dirname(path))]).toEqual([0o664, 0o775]);
});

it('CATCHWORD_DB_MODE changes an existing mirror that is open elsewhere; without it the mode stays', () => {
  const path = join(temporaryDirectory(), 'catalog.db');
  const first = openStore(path);
  openStore(path, { mode: 0o640 }).close();
  for (const end of ['', '-wal', '-shm']) expect(modeOf(`${path}${end}`)).toBe(0o640);
  openStore(path).close();
  expect(modeOf(path)).toBe(0o640);
  first.close();
});

it('CATCHWORD_DB_MODE rejects modes with which the owner could not use the file', async () => {
  for (const value of ['0400', '640x', '777', '8', '0o640']) {
    const { code, stderr } = await runHere(['status'], { CATCHWORD_DB_MODE: value }, temporaryDirectory());
    expect(code).toBe(2);
    expect(stderr).toContain(`CATCHWORD_DB_MODE: "${value}" cannot be used`);
  }
});

function expectRefused({ code, stderr }: ReturnType<typeof asOther>, why: RegExp): void {
  expect(code).toBe(2);
  expect(stderr).toMatch(why);
}

describe.skipIf(!sqliteToolsAvailable || !canBeAnother)('with a second user', () => {
  it('another user of the machine reads a shared mirror with sqlite3 and Python, while the daemon runs and after it has stopped', {
    tags: ['slow'],
  }, async () => {
    const source = await shared(30);
    const uri = `file:${source.db}?mode=ro`;
    const daemon = startService(['daemon'], { ...source.settings, LOG_LEVEL: 'info' }, source.directory);
    await daemon.shows('"msg":"started"');
    for (const read of [sqlite3, python]) expect(await read(uri, COUNT, OTHER)).toEqual(['30']);
    expect((await daemon.stop()).code).toBe(0);
    for (const read of [sqlite3, python]) expect(await read(uri, COUNT, OTHER)).toEqual(['30']);
    // Only the views: the full-text index needs a newer SQLite than Debian has.
    expect(await python(uri, 'SELECT count(*) FROM change_log', OTHER)).toEqual(['30']);
  });

  it('another user of the machine reads a shared mirror with every verb that only reads', {
    tags: ['slow'],
  }, async () => {
    const source = await shared(30);
    const [vbid = ''] = await sqlite3(`file:${source.db}?mode=ro`, 'SELECT vbid FROM catalog LIMIT 1');
    for (const args of [
      ['status'],
      ['runs'],
      ['run', '1'],
      ['product', vbid, '--history'],
      ['search', 'history'],
      ['changes', '--limit', '1'],
      ['sink', 'list'],
    ]) {
      expect(asOther(source, ...args)).toMatchObject({ code: 0, stderr: '' });
    }
    expect(asOther(source, 'doctor').stdout).toMatch(/ok +mirror +30 products/);
    const serving = { ...source.settings, CATCHWORD_HTTP_PORT: '0', LOG_LEVEL: 'info' };
    const web = start(['web'], serving, '/', undefined, OTHER);
    expect(await getJson(`${await addressOf(web)}/api/status`)).toMatchObject({ products: 30 });
    expect((await web.stop()).code).toBe(0);
  });

  it('another user of the machine compares a shared mirror with its source, and keeps the rate limit by itself', {
    tags: ['slow'],
  }, async () => {
    const source = await shared(30);
    const settings = { ...source.settings, CATCHWORD_RATE_LIMIT: '50/s', LOG_LEVEL: '' };
    const noted = openedStore(source.db);
    const now = Date.now();
    noted.source.notePause({ since: now, until: now + 7_200_000 });
    for (const args of [['verify'], ['sync', '--dry-run']]) {
      const waits = await start(args, settings, '/', undefined, OTHER).ended;
      expect(waits).toMatchObject({ code: 75, stderr: expect.stringContaining('--now') as string });
      const { code, stdout, stderr } = await start([...args, '--now'], settings, '/', undefined, OTHER).ended;
      expect({ code, stderr }).toEqual({
        code: 0,
        stderr: `this process keeps CATCHWORD_RATE_LIMIT by itself: ${source.db} cannot be written\n`,
      });
      expect(stdout).toMatch(/read 30 products from the source|a delta load of 0 products/);
    }
    expect(noted.source.pause(now)).toEqual({ since: now, until: now + 7_200_000 });
  });

  it('another user of the machine gets an error when it tries to write, and changes nothing', {
    tags: ['slow'],
  }, async () => {
    const source = await shared(5);
    for (const args of [
      ['cancel', '1'],
      ['sink', 'pause', 'x'],
    ]) {
      expectRefused(asOther(source, ...args), /cannot be written: this user may not \(EACCES\).*MIRROR_UNUSABLE/);
    }
    expect(statSync(source.db).uid).toBe(0);
  });

  it('another user of the machine gets an error that it may not read, instead of that the mirror does not exist', {
    tags: ['slow'],
  }, async () => {
    const source = await shared(5, {});
    const unread = asOther(source, 'status');
    expectRefused(unread, /cannot be read: this user may not \(EACCES\).*MIRROR_UNUSABLE/);
    expect(unread.stderr).toContain('CATCHWORD_DB_MODE');
    chmodSync(source.directory, 0o700);
    expectRefused(asOther(source, 'status'), /cannot be reached .*EACCES.*MIRROR_UNUSABLE/);
    expect(asOther(source, 'doctor').stdout).toMatch(/failed mirror .*cannot be reached/);
    chmodSync(source.directory, 0o755);
    const absent = asOther({ db: join(source.directory, 'absent.db') }, 'status');
    expect(absent).toMatchObject({ code: 1 });
    expect(absent.stderr).toContain('NOT_FOUND');
  });

  it('another user of the machine gets an error that names the missing -wal and -shm if no process has the mirror open', {
    tags: ['slow'],
  }, async () => {
    const source = await shared(5);
    // Like a program that deletes the WAL when it is the last one to close the mirror.
    await sqlite3(source.db, 'CREATE TABLE IF NOT EXISTS gone (a); DROP TABLE gone');
    expect(existsSync(`${source.db}-wal`)).toBe(false);
    expectRefused(asOther(source, 'status'), /-wal and -shm are missing.*MIRROR_UNUSABLE/);
    // Its owner opens it once.
    expect((await runHere(['status'], source.settings, source.directory)).code).toBe(0);
    expect(asOther(source, 'status')).toMatchObject({ code: 0 });
  });

  it('another user of the machine gets an error that the owner has to upgrade an older schema', async () => {
    const directory = join(temporaryDirectory(), 'shared');
    mkdirSync(directory);
    const db = join(directory, 'catalog.db');
    const store = openStore(db, { mode: 0o644 });
    const sqlite = new Database(db);
    sqlite.exec(
      'DELETE FROM __drizzle_migrations WHERE created_at = (SELECT max(created_at) FROM __drizzle_migrations)',
    );
    for (const path of [dirname(directory), directory]) chmodSync(path, 0o755);
    expectRefused(asOther({ db }, 'status'), /was written by an older catchword, and is open for reading only/);
    sqlite.close();
    store.close();
  });
});
