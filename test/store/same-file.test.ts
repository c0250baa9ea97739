// @module-tag slow
import { closeSync, existsSync, openSync, readFileSync, statSync, utimesSync, writeFileSync, writeSync } from 'node:fs';
import Database from 'better-sqlite3';
import fc from 'fast-check';
import { expect, it, onTestFinished } from 'vitest';
import { openStore, type Store } from '../../src/store/store.ts';
import { books, temporaryMirror } from '../relay/feeding.ts';
import { mirrorPath, openedStore } from './opened-store.ts';

/** More than 64 MiB: catchword moves the WAL into the file right after the commit. */
const MORE_THAN_THE_WAL = 70 * 2 ** 20;

const REPLACED = expect.objectContaining({ code: 'MIRROR_REPLACED' }) as Error;

function writeBytes(store: Store, bytes: number): void {
  store.schedule.setRetry({ kind: 'full', at: 0, reason: 'x'.repeat(bytes) });
}

/** Waits for longer than a file system rounds the time of a file, twice: to 10 ms here, and 20 ms are allowed for it. */
function passTime(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50);
}

it('a process that rarely checks accepts a WAL that was restarted and grew meanwhile', () => {
  const writing = openedStore();
  const idle = openedStore(writing.path);
  writeBytes(writing, 10);
  idle.check();
  passTime();
  writeBytes(writing, MORE_THAN_THE_WAL);
  for (let write = 0; write < 20; write++) writeBytes(writing, 2 ** 20);
  expect(() => idle.check()).not.toThrow();
  expect(() => writeBytes(idle, 10)).not.toThrow();
});

/** Writes more than the WAL holds, in steps: each note of a checkpoint writes the text again. */
function fill(store: Store): void {
  for (let written = 0; written < MORE_THAN_THE_WAL; written += 2 ** 22) writeBytes(store, 2 ** 22);
}

const STEPS = ['look', 'write', 'write', 'write more', 'write more', 'fill', 'PASSIVE', 'TRUNCATE', 'close'] as const;

it('processes accept every order of writes, checks and checkpoints', () => {
  const steps = fc.array(
    fc.record({
      who: fc.nat({ max: 2 }),
      what: fc.constantFrom(...STEPS),
    }),
    { minLength: 6, maxLength: 12 },
  );
  fc.assert(
    fc.property(steps, (taken) => {
      const db = mirrorPath();
      const stores = [openStore(db), openStore(db), openStore(db)];
      const outside = new Database(db);
      try {
        for (const { who, what } of taken) {
          const store = stores[who] as Store;
          passTime();
          if (what === 'look') store.check();
          else if (what === 'write') writeBytes(store, 10);
          else if (what === 'write more') writeBytes(store, 2 ** 20);
          else if (what === 'fill') fill(store);
          else if (what === 'close') {
            store.close();
            stores[who] = openStore(db);
          } else outside.prepare(`PRAGMA wal_checkpoint(${what})`).all();
        }
        for (const store of stores) store.check();
      } finally {
        outside.close();
        for (const store of stores) store.close();
      }
    }),
    { numRuns: Number(process.env.CATCHWORD_TEST_RUNS ?? (process.env.CI === undefined ? 6 : 12)) },
  );
});

/** A mirror whose WAL is shorter than it, and another program, which moves the WAL only on command. */
function withOutsider(): { db: string; store: Store; outside: Database.Database } {
  const store = openStore(mirrorPath());
  const outside = new Database(store.path);
  onTestFinished(() => void outside.close());
  outside.pragma('wal_autocheckpoint = 0');
  store.walCheckpoint();
  writeBytes(store, 10);
  passTime();
  return { db: store.path, store, outside };
}

it.each([
  ['empties the WAL and compacts the mirror', ['PRAGMA wal_checkpoint(TRUNCATE)', 'VACUUM']],
  [
    'does so twice, so that the WAL is as long as after the first time',
    ['PRAGMA wal_checkpoint(TRUNCATE)', 'VACUUM', 'look', 'PRAGMA wal_checkpoint(TRUNCATE)', 'VACUUM'],
  ],
  [
    'compacts a mirror whose WAL is empty, and empties the WAL again',
    ['PRAGMA wal_checkpoint(TRUNCATE)', 'look', 'VACUUM', 'PRAGMA wal_checkpoint(TRUNCATE)'],
  ],
])('a process continues after another program %s between two of its checks', (_, steps) => {
  const { store, outside } = withOutsider();
  for (const step of steps) {
    passTime();
    if (step === 'look') store.check();
    else outside.exec(step);
  }
  outside.close();
  expect(() => store.check()).not.toThrow();
  expect(() => writeBytes(store, 20)).not.toThrow();
  store.close();
});

it('a backup that is copied over the mirror and its WAL ends the process, although the salt is another one', () => {
  const { db, store } = withOutsider();
  const backup = mirrorPath();
  const source = openStore(backup);
  writeBytes(source, 30);
  const copies = ['', '-wal'].map((end) => [`${db}${end}`, readFileSync(`${backup}${end}`)] as const);
  source.close();
  store.check();
  for (const [path, content] of copies) writeFileSync(path, content);
  expect(() => store.check()).toThrow(REPLACED);
});

it('an older mirror that is copied over this one, whose WAL is empty, is read again: nothing of the newer one is written into it', () => {
  const { db, store, outside } = withOutsider();
  outside.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  const older = readFileSync(db);
  writeBytes(store, 100_000);
  outside.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  store.check();
  expect(store.schedule.retry()?.reason).toHaveLength(100_000);
  passTime();
  writeFileSync(db, older);
  store.check();
  expect(store.schedule.retry()?.reason).toHaveLength(10);
  writeBytes(store, 20);
  expect(store.checkFile(true)).toEqual([]);
});

it('an older mirror that is copied over this one, without its newest change, ends the process', () => {
  const { store, change } = temporaryMirror();
  const db = store.path;
  const outside = new Database(db);
  onTestFinished(() => void outside.close());
  change(books(2, 1));
  outside.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  const older = readFileSync(db);
  change(books(2, 2));
  outside.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  store.check();
  passTime();
  writeFileSync(db, older);
  expect(() => writeBytes(store, 20)).toThrow(REPLACED);
});

it('a file whose content is checked apart ends the process if it does not fit, before its WAL is moved', async () => {
  let answer = (_isSound: boolean): void => {};
  const asked: string[] = [];
  const checkContent = (path: string) =>
    new Promise<boolean>((resolve) => {
      asked.push(path);
      answer = resolve;
    });
  const store = openStore(mirrorPath(), { checkContent });
  writeBytes(store, 10);
  passTime();
  utimesSync(store.path, new Date(), new Date());
  writeBytes(store, MORE_THAN_THE_WAL);
  expect(asked).toEqual([store.path]);
  expect(statSync(store.path).size).toBeLessThan(MORE_THAN_THE_WAL);
  answer(false);
  await Promise.resolve();
  await expect.poll(() => existsSync(`${store.path}-wal.replaced`)).toBe(true);
  expect(() => writeBytes(store, 10)).toThrow(REPLACED);
});

it('a file whose check apart is killed is checked in this thread', async () => {
  const store = openedStore(mirrorPath(), { checkContent: () => Promise.reject(new Error('killed')) });
  writeBytes(store, 10);
  passTime();
  utimesSync(store.path, new Date(), new Date());
  writeBytes(store, 20);
  await Promise.resolve();
  expect(() => writeBytes(store, 30)).not.toThrow();
});

it('a write does not change a file that is copied over the mirror meanwhile and does not fit the WAL', () => {
  const store = openStore(mirrorPath());
  const db = store.path;
  const other = Buffer.alloc(2 ** 20, 'not a database, ');
  store.walCheckpoint();
  passTime();
  const write = () =>
    store.request(() => {
      writeFileSync(db, other);
      writeBytes(store, 10);
    });
  expect(write).toThrow(REPLACED);
  expect(() => writeBytes(store, 10)).toThrow(REPLACED);
  expect(readFileSync(db)).toEqual(other);
  expect(existsSync(`${db}-wal.replaced`)).toBe(true);
});

/** A mirror with a decision so long that no process reads all of it when it opens the mirror. */
function mirrorWithDecision(): string {
  const store = openStore(mirrorPath());
  const row = { at: 1, who: 'a test', action: 'pause', target: 'x'.repeat(4 * 2 ** 20), argument: null, endedAt: null };
  store.request(({ actions }) => actions.add({ ...row, state: 'done', outcome: null }));
  store.close();
  return store.path;
}

/** Overwrites the newer half of a file in place. */
function overwrite(db: string): void {
  const half = statSync(db).size / 2;
  const file = openSync(db, 'r+');
  writeSync(file, Buffer.alloc(half), 0, half, half);
  closeSync(file);
}

it('a transaction ends with MIRROR_REPLACED if it reads what was written over since it began', () => {
  const store = openStore(mirrorWithDecision());
  const read = () =>
    store.request(({ actions }) => {
      passTime();
      overwrite(store.path);
      return actions.list(1);
    });
  expect(read).toThrow(REPLACED);
  expect(() => writeBytes(store, 10)).toThrow(REPLACED);
});

it('a transaction ends with MIRROR_WRITE_FAILED if it reads what was damaged before the mirror was opened', () => {
  const db = mirrorWithDecision();
  overwrite(db);
  const store = openedStore(db);
  const message = expect.stringContaining('SQLITE_CORRUPT') as string;
  const damaged = expect.objectContaining({ code: 'MIRROR_WRITE_FAILED', message }) as Error;
  expect(() => store.request(({ actions }) => actions.list(1))).toThrow(damaged);
  expect(existsSync(`${db}-wal.replaced`)).toBe(false);
});

it.each([
  ['touched', (db: string) => utimesSync(db, new Date(), new Date())],
  ['given an older time', (db: string) => utimesSync(db, new Date(0), new Date(0))],
  ['written over with what it holds', (db: string) => writeFileSync(db, readFileSync(db), { flag: 'r+' })],
])('a file that another program has %s is used on by all processes', (_, change) => {
  const db = mirrorPath();
  const [store, other] = [openedStore(db), openedStore(db)];
  writeBytes(store, 10);
  passTime();
  change(db);
  writeBytes(store, 20);
  other.check();
  writeBytes(other, 30);
  expect(store.schedule.retry()?.reason).toHaveLength(30);
  expect(store.checkFile(true)).toEqual([]);
});

it('a checkpoint that the disk interrupted does not end the process', () => {
  const store = openedStore();
  writeBytes(store, 10);
  passTime();
  store.request(() => {
    writeBytes(store, 20);
    utimesSync(store.path, new Date(), new Date());
  });
  expect(() => writeBytes(store, 30)).not.toThrow();
});

it('a checkpoint that a kill interrupted does not end other processes', () => {
  const store = openedStore();
  const killed = new Database(store.path);
  killed.exec("UPDATE mirror SET file_state = 'checkpoint'");
  passTime();
  utimesSync(store.path, new Date(), new Date());
  killed.close();
  expect(() => store.check()).not.toThrow();
  expect(() => writeBytes(store, 10)).not.toThrow();
});
