import {
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execute, query } from '@catchword/testing/sqlite';
import BetterSqlite from 'better-sqlite3';
import { expect, it } from 'vitest';
import { addressOf, run, runProcess, startService, stopWhileWriting } from '../support/cli.ts';
import { runHere } from '../support/in-process.ts';
import { load } from '../support/load.ts';
import { catalogOf, expectExactLog, truthOf, withoutWithdrawn } from '../support/mirror.ts';
import { filled, type Place } from '../support/place.ts';

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));

function command(args: readonly string[], { settings, directory }: Place) {
  return runHere(args, settings, directory);
}

/** Runs a command that can write 500 kB to a file: then a write fails with EFBIG, like one on a full disk with ENOSPC. */
function onFullDisk(args: readonly string[], { settings, directory }: Place) {
  const limited = 'trap "" XFSZ; ulimit -f 1000; exec "$0" "$@"';
  return runProcess(['sh', '-c', limited, process.execPath, CLI, ...args], settings, directory);
}

/** The same place, with another file as its mirror. */
function withMirror(source: Place, db: string): Place {
  return { ...source, db, settings: { ...source.settings, CATCHWORD_DB: db } };
}

/** A filled mirror, and a backup of it. */
async function backedUp(...scene: Parameters<typeof filled>): Promise<Place> {
  const source = await filled(...scene);
  expect((await command(['backup', 'b.db'], source)).code).toBe(0);
  return source;
}

function incarnationOf(db: string): unknown {
  return query(db, 'SELECT incarnation FROM mirror');
}

function lastSeq(db: string): number {
  return query<{ seq: number }>(db, 'SELECT max(seq) AS seq FROM changes')[0]?.seq ?? 0;
}

/** The files of a mirror, and whether it is in WAL mode, as byte 18 of an SQLite file says. */
function mirrorFiles({ directory, db }: Place): unknown[] {
  const companions = readdirSync(directory).filter((name) => /^catalog\.db-/.test(name));
  return [...companions.toSorted(), readFileSync(db)[18]];
}

/** The names in the directory of a mirror, without the companions that SQLite makes. */
function namesIn({ directory }: Place): string[] {
  return readdirSync(directory).filter((name) => !/-(wal|shm)$/.test(name));
}

/** Writes zeros over the middle of a file. */
function damage(path: string): void {
  const bytes = readFileSync(path);
  bytes.fill(0, bytes.length / 2, bytes.length / 2 + 40_000);
  writeFileSync(path, bytes);
}

it('catchword backup copies one moment of a mirror that a daemon writes all the time', { tags: ['slow'] }, async () => {
  const source = await filled({ items: 3_000, details: true, churnPerSecond: 200 });
  const { directory, db } = source;
  const settings = {
    ...source.settings,
    CATCHWORD_DELTA_CRON: '* * * * * *',
    CATCHWORD_FULL_CRON: 'off',
    LOG_LEVEL: 'info',
  };
  const daemon = startService(['daemon'], settings, directory);
  await daemon.shows('run complete');
  for (const name of ['a.db', 'b.db', 'c.db']) {
    const before = lastSeq(db);
    const { code, stdout } = await run(['backup', name, '--json'], settings, directory);
    expect(code).toBe(0);
    const found = JSON.parse(stdout) as { last_seq: number; products: number; bytes: number };
    expect(found.last_seq).toBeGreaterThanOrEqual(before);
    const file = join(directory, name);
    expect(statSync(file)).toMatchObject({ size: found.bytes });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    // In rollback mode: it can be read from a read-only directory, and has no companions.
    expect(query(file, 'PRAGMA journal_mode')).toEqual([{ journal_mode: 'delete' }]);
    expect(catalogOf(file).size).toBe(found.products);
    expect(incarnationOf(file)).toEqual(incarnationOf(db));
    expect(expectExactLog(file)).toBe(found.last_seq);
    await expect.poll(() => lastSeq(db)).toBeGreaterThan(found.last_seq);
  }
  expect((await daemon.stop()).code).toBe(0);
});

it('catchword backup never replaces a file, and says why it cannot use a target', async () => {
  const source = await filled({ items: 20 });
  const { directory, db } = source;
  writeFileSync(join(directory, 'mine'), 'mine');
  linkSync(db, join(directory, 'hard.db'));
  symlinkSync(db, join(directory, 'soft.db'));
  symlinkSync(join(directory, 'not-mounted', 'b.db'), join(directory, 'dangling.db'));
  mkdirSync(join(directory, 'folder'));
  const wrong: Record<string, RegExp> = {
    mine: /exists; catchword never replaces a file/,
    folder: /exists/,
    'dangling.db': /exists; catchword never replaces a file/,
    'catalog.db': /belongs to the mirror itself/,
    'catalog.db-wal': /belongs to the mirror itself/,
    'catalog.db-shm': /belongs to the mirror itself/,
    'hard.db': /belongs to the mirror itself/,
    'soft.db': /belongs to the mirror itself/,
    'none/b.db': /none is not a directory/,
    'mine/b.db': /mine is not a directory/,
  };
  const before = namesIn(source);
  for (const [file, message] of Object.entries(wrong)) {
    const { code, stdout, stderr } = await command(['backup', file], source);
    expect([file, code, stdout]).toEqual([file, 2, '']);
    expect(stderr).toMatch(message);
  }
  expect(namesIn(source)).toEqual(before);
  expect(readFileSync(join(directory, 'mine'), 'utf8')).toBe('mine');
  const part = join(directory, 'shop.part');
  copyFileSync(db, part);
  const named = withMirror(source, part);
  expect((await command(['backup', 'shop'], named)).stderr).toMatch(/shop belongs to the mirror itself/);
  expect(catalogOf(part)).toEqual(catalogOf(db));
  const none = withMirror(source, join(directory, 'other.db'));
  expect(await command(['backup', 'b.db'], none)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('no mirror at'),
  });
});

it('catchword backup leaves no file behind when it is interrupted, or when the disk is full', {
  tags: ['slow'],
}, async () => {
  const source = await filled({ items: 5_000, details: true });
  const before = namesIn(source);
  const interrupted = await stopWhileWriting(['backup', 'b.db'], 'b.db', 'SIGINT', source);
  expect(interrupted).toMatchObject({
    code: 130,
    stdout: '',
    stderr: expect.stringContaining('nothing was written'),
  });
  expect(namesIn(source)).toEqual(before);
  const full = await onFullDisk(['backup', 'b.db'], source);
  expect(full).toMatchObject({ code: 1, stdout: '' });
  expect(full.stderr).toMatch(/b\.db\.part cannot be written: .* \[BACKUP_FAILED\]\nhint {2}Free disk space/);
  expect(namesIn(source)).toEqual(before);
});

it('catchword backup compares the indexes of the copy with their tables', async () => {
  const source = await filled({ items: 50 });
  // An index of other values; SQLite copies it as it is, and its number of entries is right.
  const sqlite = new BetterSqlite(source.db).unsafeMode();
  sqlite.exec(`DROP INDEX products_changed_seq;
      CREATE INDEX products_changed_seq ON products (-changed_seq);
      PRAGMA writable_schema = ON;
      UPDATE sqlite_schema SET sql = replace(sql, '-', '') WHERE name = 'products_changed_seq';`);
  sqlite.close();
  const { code, stderr } = await command(['backup', 'b.db'], source);
  expect(code).toBe(2);
  expect(stderr).toMatch(/its copy is not sound: .*products_changed_seq/);
  expect(namesIn(source)).toEqual(['catalog.db']);
});

it('catchword backup reports a damaged mirror, and leaves no copy of it', async () => {
  const source = await filled({ items: 500, details: true });
  damage(source.db);
  const { code, stderr } = await command(['backup', 'b.db'], source);
  expect(code).toBe(2);
  expect(stderr).toMatch(/catalog\.db is damaged \(.*\[MIRROR_UNUSABLE\]\nhint {2}Restore a sound backup/);
  expect(namesIn(source)).toEqual(['catalog.db']);
  const doctor = await command(['doctor'], source);
  expect(doctor.code).toBe(1);
  expect(doctor.stdout).toMatch(/failed mirror .*is damaged/);
  expect(doctor.stdout).toContain('npx catchword restore FILE');
});

it('catchword restore makes a backup the mirror, as a new incarnation that the next run completes, and keeps the former mirror', async () => {
  const source = await backedUp({ items: 300 });
  const { db, directory, sandbox, settings } = source;
  const saved = catalogOf(db);
  sandbox.catalog.mutate({ create: 5, update: 20, remove: 5, seed: 1 });
  await load(settings, 'full');
  const lost = catalogOf(db);
  const former = incarnationOf(db);
  const { code, stdout } = await command(['restore', 'b.db', '--json'], source);
  expect(code).toBe(0);
  const kept = join(directory, 'catalog.db.before-restore');
  expect(JSON.parse(stdout)).toMatchObject({ mirror: db, products: 300, last_seq: 300, kept, sinks: [] });
  expect(catalogOf(db)).toEqual(saved);
  expect(catalogOf(kept)).toEqual(lost);
  expect(incarnationOf(kept)).toEqual(former);
  expect(incarnationOf(db)).not.toEqual(former);
  expect(namesIn(source).toSorted()).toEqual(['b.db', 'catalog.db', 'catalog.db.before-restore']);
  // A delta would not see what was removed since: it is made a full run.
  expect(await load(settings, 'delta')).toMatchObject({ kind: 'full', state: 'complete' });
  expect(await load(settings, 'delta')).toMatchObject({ kind: 'delta' });
  expect(withoutWithdrawn(catalogOf(db))).toEqual(await truthOf(sandbox.url));
  expectExactLog(db);
});

it('catchword restore lets sync read everything, also after a delta that the backup holds unfinished', async () => {
  const source = await filled({ items: 60 });
  const { settings, directory, sandbox, db } = source;
  const stopped = await runHere(['sync'], { ...settings, CATCHWORD_MIN_FREE: '100000GB' }, directory);
  expect(stopped.stderr).toContain('MIRROR_DISK_LOW');
  await command(['backup', 'b.db'], source);
  await command(['restore', 'b.db'], source);
  const { code, stdout } = await command(['sync', '--json'], source);
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ id: 3, kind: 'full', state: 'complete' });
  expect(withoutWithdrawn(catalogOf(db))).toEqual(await truthOf(sandbox.url));
});

it('catchword restore restores to a path without a mirror, also in a directory that does not exist', async () => {
  const source = await backedUp({ items: 50 });
  const db = join(source.directory, 'new', 'data', 'catalog.db');
  const elsewhere = withMirror(source, db);
  const { code, stdout } = await command(['restore', 'b.db'], elsewhere);
  expect(code).toBe(0);
  expect(stdout).not.toContain('before-restore');
  expect(catalogOf(db)).toEqual(catalogOf(source.db));
  expect(statSync(db).mode & 0o777).toBe(0o600);
});

it('catchword restore says that a backup is one of another service', async () => {
  const source = await backedUp({ items: 3 });
  expect((await command(['restore', 'b.db'], source)).stdout).toContain('next: npx catchword sync');
  const other = { ...source, settings: { ...source.settings, CATCHWORD_BASE_URL: 'http://127.0.0.1:9/' } };
  const { stdout } = await command(['restore', 'b.db'], other);
  expect(stdout).toContain(`it is a mirror of ${source.sandbox.url}, and CATCHWORD_BASE_URL is http://127.0.0.1:9`);
  expect(stdout).not.toContain('next:');
});

it('catchword restore is refused while any process has the mirror open', { tags: ['slow'] }, async () => {
  const source = await backedUp({ items: 50 }, { CATCHWORD_DELTA_CRON: 'off', CATCHWORD_FULL_CRON: 'off' });
  const { directory, db } = source;
  const sink = { CATCHWORD_SINK_FILE: 'jsonl:changes.jsonl' };
  const serving = { ...source.settings, ...sink, CATCHWORD_HTTP_PORT: '0', LOG_LEVEL: 'info' };
  const before = incarnationOf(db);
  for (const role of ['daemon', 'relay', 'web']) {
    const service = startService([role], serving, directory);
    await (role === 'web' ? addressOf(service) : service.shows('"msg":"started"'));
    const { code, stderr } = await run(['restore', 'b.db'], source.settings, directory);
    expect([role, code]).toEqual([role, 1]);
    expect(stderr).toMatch(/another process has .*catalog\.db open \[MIRROR_BUSY\]\nhint {2}Stop/);
    await service.stop();
  }
  expect(incarnationOf(db)).toEqual(before);
  expect(existsSync(`${db}.before-restore`)).toBe(false);
  expect((await command(['restore', 'b.db'], source)).code).toBe(0);
  // Without a schedule, and without the run that restore asks for: the daemon makes it.
  const daemon = startService(['daemon'], serving, directory);
  expect(await daemon.shows('run complete')).toContain('"kind":"full"');
  expect((await daemon.stop()).code).toBe(0);
});

it('catchword restore does not apply the WAL of a killed process to the restored mirror, and keeps what it holds', {
  tags: ['slow'],
}, async () => {
  const source = await backedUp({ items: 200, churnPerSecond: 50 });
  const { directory, db } = source;
  const saved = catalogOf(db);
  const daemon = startService(
    ['daemon'],
    { ...source.settings, CATCHWORD_DELTA_CRON: '* * * * * *', LOG_LEVEL: 'info' },
    directory,
  );
  await expect.poll(() => catalogOf(db)).not.toEqual(saved);
  await daemon.stop('SIGKILL');
  expect(statSync(`${db}-wal`).size).toBeGreaterThan(0);
  const newest = lastSeq(db);
  expect((await command(['restore', 'b.db'], source)).code).toBe(0);
  expect(catalogOf(db)).toEqual(saved);
  expect(lastSeq(`${db}.before-restore`)).toBe(newest);
  expectExactLog(db);
});

it('catchword restore rejects a file that is not a sound backup, and changes nothing', { tags: ['slow'] }, async () => {
  // Others may read it, so its -wal and -shm are there.
  const source = await filled({ items: 500, details: true }, { CATCHWORD_DB_MODE: '0640' });
  const { directory, db } = source;
  const file = (name: string) => join(directory, name);
  for (const name of ['damaged.db', 'cut.db', 'newer.db']) await command(['backup', name], source);
  damage(file('damaged.db'));
  truncateSync(file('cut.db'), statSync(file('cut.db')).size - 100_000);
  execute(file('newer.db'), `INSERT INTO __drizzle_migrations (hash, created_at) VALUES ('x', 9999999999999)`);
  writeFileSync(file('text.db'), 'not a database, and longer than a header of one');
  writeFileSync(file('empty.db'), '');
  execute(file('foreign.db'), 'CREATE TABLE theirs (a)');
  const wrong: Record<string, RegExp> = {
    'damaged.db': /is damaged/,
    'cut.db': /is damaged/,
    'newer.db': /was written by a newer catchword/,
    'text.db': /is not an SQLite database/,
    'empty.db': /holds no mirror yet/,
    'foreign.db': /is another program's database/,
    'catalog.db': /is the mirror itself/,
    '.': /is not a file/,
  };
  const [before, bytes, files] = [namesIn(source), catalogOf(db), mirrorFiles(source)];
  for (const [name, message] of Object.entries(wrong)) {
    const { code, stdout, stderr } = await command(['restore', name], source);
    expect([name, code, stdout]).toEqual([name, 2, '']);
    expect(stderr).toMatch(message);
    expect([name, ...mirrorFiles(source)]).toEqual([name, ...files]);
  }
  expect(await command(['restore', 'none.db'], source)).toMatchObject({ code: 1 });
  copyFileSync(db, `${db}.restoring`);
  const itself = await command(['restore', 'catalog.db.restoring'], source);
  expect(itself.stderr).toMatch(/would be replaced by a copy of itself/);
  expect(catalogOf(`${db}.restoring`)).toEqual(bytes);
  rmSync(`${db}.restoring`);
  await command(['backup', 'sound.db'], source);
  const full = await onFullDisk(['restore', 'sound.db'], source);
  expect(full).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('[BACKUP_FAILED]') });
  rmSync(file('sound.db'));
  expect(namesIn(source)).toEqual(before);
  expect(catalogOf(db)).toEqual(bytes);
});

it('catchword restore replaces a damaged mirror, but not another file, nor next to a WAL without a mirror', async () => {
  const source = await backedUp({ items: 500, details: true });
  const { directory, db } = source;
  const saved = catalogOf(db);
  damage(db);
  expect((await command(['restore', 'b.db'], source)).code).toBe(0);
  expect(catalogOf(db)).toEqual(saved);
  for (const what of ['not a database, and longer than a header of one', null]) {
    const other = join(directory, `other-${what === null}.db`);
    if (what === null) execute(other, 'CREATE TABLE theirs (a)');
    else writeFileSync(other, what);
    const before = readFileSync(other);
    const at = withMirror(source, other);
    const { code, stderr } = await command(['restore', 'b.db'], at);
    expect(code).toBe(2);
    expect(stderr).toMatch(/hint {2}Stop catchword, move the file away/);
    expect(readFileSync(other).equals(before)).toBe(true);
  }
  const left = join(directory, 'left.db');
  writeFileSync(`${left}-wal`, 'x');
  const at = withMirror(source, left);
  expect((await command(['restore', 'b.db'], at)).stderr).toMatch(/left\.db-wal is there, and would be applied/);
  expect(existsSync(left)).toBe(false);
});
