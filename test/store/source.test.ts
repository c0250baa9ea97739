import { selectionText, sourceAddress, sourceId } from '@catchword/catalog/source-identity';
import Database from 'better-sqlite3';
import fc from 'fast-check';
import { expect, it, onTestFinished } from 'vitest';
import { createPaceWriter, createSourceReader } from '../../src/store/rows/source-state.ts';
import { writeUnder } from '../../src/store/schema/lease.ts';
import { createQueries } from '../../src/store/schema/queries.ts';
import { openStore } from '../../src/store/store.ts';
import { mirrorPath, openedStore } from './opened-store.ts';

const T = 1_800_000_000_000;
const HOUR = 3_600_000;

it('the id of a source depends on all settings that decide which products a source returns', () => {
  const access = { baseUrl: 'https://api.example.com', apiKey: 'A', includeDetails: ['x', 'y'], currency: [] };
  const same = { ...access, baseUrl: 'HTTPS://api.example.com:443/', includeDetails: ['y', 'x'] };
  expect(sourceId(same)).toBe(sourceId(access));
  const others = [
    { ...access, baseUrl: 'https://api.example.com/2' },
    { ...access, apiKey: 'B' },
    { ...access, currency: ['EUR'] },
    { ...access, includeDetails: [] },
    { ...access, lookupPath: '/v4/products/:vbid' },
  ];
  expect(new Set([access, ...others].map(sourceId)).size).toBe(6);
});

it.each([
  ['HTTPS://API.Example.com:443/catalog//', 'https://api.example.com/catalog'],
  ['http://api.example.com:80', 'http://api.example.com'],
  ['http://api.example.com:8080/', 'http://api.example.com:8080'],
  ['https://user:secret@api.example.com/v?key=1#top', 'https://api.example.com/v'],
])('the address of a source of %s is %s', (given, expected) => {
  expect(sourceAddress(given)).toBe(expected);
});

it('the address of a source does not depend on the order of the settings, nor does the selection', () => {
  expect(selectionText({ includeDetails: ['b', 'a', 'b'], currency: ['USD', 'EUR'] })).toBe(
    selectionText({ includeDetails: ['a', 'b'], currency: ['EUR', 'USD'] }),
  );
});

it('a noted source is returned as noted, finished or not', () => {
  const { source, keeperLease } = openedStore();
  expect(source.noted()).toBeNull();
  const selection = selectionText({ includeDetails: ['metadata'], currency: [] });
  for (const unfinished of [true, false]) {
    const noted = { address: 'https://api.example.com', selection, unfinished };
    writeUnder(keeperLease, T, (writer) => writer.source.note(noted));
    expect(source.noted()).toEqual(noted);
  }
});

it('a learned limit is forgotten when the mirror gets another address, and only then', () => {
  const { source, keeperLease } = openedStore();
  const learned = { refusedAt: 50, perMinute: 35 };
  source.learnRate(() => learned);
  const selection = selectionText({ includeDetails: [], currency: [] });
  const noteAddress = (address: string): void => {
    writeUnder(keeperLease, T, (writer) => writer.source.note({ address, selection, unfinished: false }));
  };
  noteAddress('https://api.example.com');
  noteAddress('https://api.example.com');
  expect(source.learnedRate()).toEqual(learned);
  noteAddress('https://new.example.com');
  expect(source.learnedRate()).toBeNull();
});

it('a pause that the source asked for holds for the rest of its duration, in every process', () => {
  const store = openedStore();
  store.source.notePause({ since: T, until: T + HOUR });
  expect(openedStore(store.path).source.pause(T + 50 * 60_000)).toEqual({ since: T, until: T + HOUR });
  expect(store.source.pause(T + HOUR)).toBeNull();
});

it('a pause that the source asked for is not shortened by a pause that another process notes', () => {
  const { source } = openedStore();
  source.notePause({ since: T, until: T + 2 * HOUR });
  source.notePause({ since: T + 1_000, until: T + HOUR });
  expect(source.pause(T + 1_000)).toEqual({ since: T, until: T + 2 * HOUR });
  source.notePause({ since: T + 2_000, until: T + 3 * HOUR });
  expect(source.pause(T + 2_000)).toEqual({ since: T + 2_000, until: T + 3 * HOUR });
});

it('a pause that the source asked for is compared by its length if the clock that noted it was ahead', () => {
  const { source } = openedStore();
  source.notePause({ since: T + 10 * HOUR, until: T + 10 * HOUR + 60_000 });
  source.notePause({ since: T, until: T + HOUR });
  expect(source.pause(T)).toEqual({ since: T, until: T + HOUR });
});

it('a pause that the source asked for does not become longer when the clock is put back', () => {
  const { source } = openedStore();
  source.notePause({ since: T, until: T + HOUR });
  expect(source.pause(T - 2 * HOUR)).toEqual({ since: T - 2 * HOUR, until: T - HOUR });
});

it('a pause that the source asked for lasts at most a day, even if its start is unknown', () => {
  const { source } = openedStore();
  for (const until of [T + 1_000 * 24 * HOUR, Number.POSITIVE_INFINITY]) {
    source.notePause({ since: T, until });
    expect(source.pause(T)).toEqual({ since: T, until: T + 24 * HOUR });
  }
});

it('a pause that the source asked for restarts only once after the clock was put back', () => {
  const store = openedStore();
  store.source.notePause({ since: T, until: T + HOUR });
  const now = T - 2 * HOUR;
  for (const at of [now, now + HOUR - 1]) {
    expect(store.source.keepPause(at)).toEqual({ since: now, until: now + HOUR });
  }
  expect(openedStore(store.path).source.pause(now + HOUR - 1)).toEqual({ since: now, until: now + HOUR });
  expect(store.source.keepPause(now + HOUR)).toBeNull();
  // It stays over when the clock is put back again.
  expect(store.source.keepPause(now + 1)).toBeNull();
});

it('a pause that the source asked for is not noted in a read-only mirror, nor are requests', () => {
  const owner = openedStore();
  owner.source.notePause({ since: T, until: T + HOUR });
  const sqlite = new Database(owner.path, { readonly: true });
  onTestFinished(() => void sqlite.close());
  const queries = createQueries(sqlite);
  const source = createPaceWriter(queries, createSourceReader(queries), () => {
    throw new Error('nothing is written');
  });
  expect(source.keepPause(T - HOUR)).toEqual({ since: T - HOUR, until: T });
  expect(source.notePause({ since: T, until: T + 2 * HOUR })).toBe(false);
  expect(source.forgetPause()).toBe(false);
  expect(source.reserve(T, { intervalMs: 1_000, slackMs: 5, slots: 1 })).toBeNull();
  expect(owner.source.pause(T)).toEqual({ since: T, until: T + HOUR });
});

it('reserved requests are one interval apart, over all processes of the mirror', () => {
  const first = openedStore();
  let example = 0;
  const processes = [first, openedStore(first.path), openedStore(first.path)];
  fc.assert(
    fc.property(
      fc.array(fc.record({ process: fc.nat({ max: 2 }), waitMs: fc.nat({ max: 300 }) }), { maxLength: 60 }),
      fc.integer({ min: 1, max: 4 }),
      (steps, slots) => {
        const request = { intervalMs: 100, slackMs: 5, slots };
        // Reservations of earlier examples are in the past.
        let now = T + HOUR * ++example;
        const granted: number[] = [];
        for (const { process, waitMs } of steps) {
          now += waitMs;
          const found = processes[process]?.source.reserve(now, request);
          if (found != null && found <= now) granted.push(found);
        }
        granted.slice(1).forEach((at, index) => {
          expect(at - (granted[index] ?? 0)).toBeGreaterThanOrEqual(slots * 100);
        });
      },
    ),
    { numRuns: 20 },
  );
});

it('reserved requests outlive the process that reserved them', () => {
  const request = { intervalMs: 60_000, slackMs: 300, slots: 1 };
  const killed = openStore(mirrorPath());
  expect(killed.source.reserve(T, request)).toBe(T);
  killed.close();
  const next = openedStore(killed.path);
  expect(next.source.reserve(T + 10, request)).toBe(T + 60_000);
  expect(next.source.reserve(T + 60_000, request)).toBe(T + 60_000);
});

it('reserved requests delay requests by one interval, once, if the clock was ahead', () => {
  const { source } = openedStore();
  const request = { intervalMs: 1_000, slackMs: 5, slots: 1 };
  source.reserve(T + 2 * HOUR, request);
  expect(source.reserve(T, request)).toBe(T + 1_000);
  expect(source.reserve(T + 999, request)).toBe(T + 1_000);
  expect(source.reserve(T + 1_000, request)).toBe(T + 1_000);
});
