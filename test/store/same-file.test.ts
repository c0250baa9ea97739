import { copyFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import fc from 'fast-check';
import { expect, it, onTestFinished } from 'vitest';
import { openStore, type Store } from '../../src/store/store.ts';
import { temporaryDirectory } from '../support/mirror.ts';

/** So many bytes that SQLite moves the WAL into the file right after the commit: more than 64 MiB. */
const MORE_THAN_THE_WAL = 70 * 2 ** 20;

function writeBytes(store: Store, bytes: number): void {
  store.schedule.setRetry({ kind: 'full', at: 0, reason: 'x'.repeat(bytes) });
}

/** Longer than a file system may round the time of a file. */
function passTime(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 25);
}

function openStores(count: number): { db: string; stores: Store[] } {
  const db = join(temporaryDirectory(), 'catalog.db');
  const stores = Array.from({ length: count }, () => openStore(db));
  return { db, stores };
}

function closing(store: Store): Store {
  onTestFinished(() => store.close());
  return store;
}

it('a process that seldom looks accepts a WAL that began again and grew in the meantime', () => {
  const { stores } = openStores(2);
  const [writing, idle] = stores.map(closing) as [Store, Store];
  writeBytes(writing, 10);
  idle.check();
  passTime();
  writeBytes(writing, MORE_THAN_THE_WAL);
  for (let write = 0; write < 20; write++) writeBytes(writing, 2 ** 20);
  expect(() => idle.check()).not.toThrow();
  expect(() => writeBytes(idle, 10)).not.toThrow();
});

const STEPS = ['look', 'write', 'write', 'write more', 'write more', 'fill', 'PASSIVE', 'TRUNCATE', 'close'] as const;

it('processes accept every order of writes, looks and checkpoints', () => {
  const steps = fc.array(
    fc.record({
      who: fc.nat({ max: 2 }),
      what: fc.constantFrom(...STEPS),
    }),
    { minLength: 6, maxLength: 12 },
  );
  fc.assert(
    fc.property(steps, (taken) => {
      const { db, stores } = openStores(3);
      const outside = new Database(db);
      try {
        for (const { who, what } of taken) {
          const store = stores[who] as Store;
          passTime();
          if (what === 'look') store.check();
          else if (what === 'write') writeBytes(store, 10);
          else if (what === 'write more') writeBytes(store, 2 ** 20);
          else if (what === 'fill') writeBytes(store, MORE_THAN_THE_WAL);
          else if (what === 'close') {
            store.close();
            stores[who] = openStore(db);
          } else {
            outside.prepare(`PRAGMA wal_checkpoint(${what})`).all();
            // Processes look every five seconds; nobody else empties the WAL twice in so short a time.
            for (const each of stores) each.check();
          }
        }
        for (const store of stores) store.check();
      } finally {
        outside.close();
        for (const store of stores) store.close();
      }
    }),
    { numRuns: Number(process.env.CATCHWORD_TEST_RUNS ?? 12) },
  );
});

it('a copy over the file is noticed by the write that it falls into', () => {
  const { db, stores } = openStores(1);
  const store = stores[0] as Store;
  const backup = `${db}.backup`;
  store.walCheckpoint();
  copyFileSync(db, backup);
  writeBytes(store, 2 ** 20);
  passTime();
  const write = () =>
    store.write(() => {
      copyFileSync(backup, db);
      writeBytes(store, 10);
    });
  expect(write).toThrow(expect.objectContaining({ code: 'MIRROR_REPLACED' }) as Error);
  expect(() => writeBytes(store, 10)).toThrow(expect.objectContaining({ code: 'MIRROR_REPLACED' }) as Error);
  expect(existsSync(`${db}-wal.replaced`)).toBe(true);
});
