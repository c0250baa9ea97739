import { execFile } from 'node:child_process';
import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startRawSource } from '@catchword/testing/raw-source';
import { execute } from '@catchword/testing/sqlite';
import { sqliteToolsAvailable } from '@catchword/testing/sqlite-tools';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it } from 'vitest';
import { growthOf } from '../../src/cli/commands/doctor/disk-check.ts';
import { openStore } from '../../src/store/store.ts';
import { runHere } from '../support/in-process.ts';
import { expectExactLog, settingsFor } from '../support/mirror.ts';
import { filled, type Place } from '../support/place.ts';

const DAY_MS = 86_400_000;
const NOW = Date.parse('2026-11-20T10:00:00Z');

interface Finding {
  readonly check: string;
  readonly level: string;
  readonly text: string;
  readonly hint?: string;
}

async function diskOf({ settings, directory }: Place): Promise<Finding> {
  const { stdout } = await runHere(['doctor', '--json'], settings, directory);
  const found = (JSON.parse(stdout) as Finding[]).find(({ check }) => check === 'disk');
  if (found === undefined) throw new Error('the disk was not checked');
  return found;
}

/** Makes most of the file unused, as a pruned log does. */
function makeHoles({ db }: Place): void {
  execute(db, 'CREATE TABLE hole (bytes BLOB)');
  for (let part = 0; part < 8; part++) execute(db, 'INSERT INTO hole VALUES (zeroblob(10000000))');
  execute(db, 'DROP TABLE hole');
  execute(db, 'PRAGMA wal_checkpoint(TRUNCATE)');
}

it.skipIf(!sqliteToolsAvailable)(
  'the advice about VACUUM frees what it says while catchword is stopped, and the mirror goes on',
  { tags: ['slow'] },
  async () => {
    const source = await filled({ items: 200 });
    expect(await diskOf(source)).toMatchObject({
      level: 'ok',
      text: expect.stringMatching(/VACUUM would free \d+ kB$/),
    });
    makeHoles(source);
    const before = statSync(source.db).size;
    const advised = await diskOf(source);
    expect(advised).toMatchObject({ level: 'note', text: expect.stringMatching(/VACUUM would free 80\.\d MB$/) });
    const command = /^While catchword is stopped, run: (sqlite3 '.*' VACUUM) \(it needs/.exec(advised.hint ?? '')?.[1];
    await promisify(execFile)('sh', ['-c', command ?? 'exit 1'], { cwd: '/' });
    expect(before - statSync(source.db).size).toBeGreaterThan(79e6);
    expect(await diskOf(source)).toMatchObject({
      level: 'ok',
      text: expect.stringContaining('VACUUM would free 0 kB'),
    });
    expect((await runHere(['sync'], source.settings, source.directory)).code).toBe(0);
    expectExactLog(source.db);
  },
);

it.skipIf(!sqliteToolsAvailable)('the advice about VACUUM names the process to stop first', async () => {
  const source = await filled({ items: 3 });
  makeHoles(source);
  const store = openStore(source.db, { self: { pid: 4321, host: 'elsewhere', boot: null, pidNamespace: null } });
  store.daemonLease.acquire(Date.now());
  store.close();
  expect((await diskOf(source)).hint).toMatch(
    /^Stop process 4321 on elsewhere first, which cannot write while VACUUM works and gives up its run; then run: sqlite3 /,
  );
});

it('doctor fails while runs stop because too little space is free', async () => {
  const source = await filled({ items: 3 });
  const low = { ...source, settings: { ...source.settings, CATCHWORD_MIN_FREE: '100000GB' } };
  expect(await diskOf(low)).toMatchObject({
    level: 'failed',
    text: expect.stringMatching(/ free; .*runs stop below CATCHWORD_MIN_FREE \(100000\.00 GB\)$/),
    hint: expect.stringMatching(/^Free space/),
  });
  const off = { ...source, settings: { ...source.settings, CATCHWORD_MIN_FREE: 'off' } };
  expect(await diskOf(off)).toMatchObject({ level: 'ok' });
});

/** Dates the size that the only run noted, and adds a run of another size. */
function sized({ db }: Place, days: number, bytes: number): void {
  execute(db, `UPDATE runs SET finished_at = ${NOW - days * DAY_MS}, used_bytes = 10000000`);
  execute(
    db,
    `INSERT INTO runs (kind, state, started_at, finished_at, used_bytes, selection)
       VALUES ('delta', 'complete', 1, ${NOW}, ${bytes}, '{}')`,
  );
}

it.each([
  [6, 20e6, 'no forecast before a week of runs'],
  [10, 1e12 + 10e6, 'the mirror grows by 100.00 GB a day: the disk is full in about '],
  [10, 10e6, 'the mirror does not grow'],
  [10, 9e6, 'the mirror does not grow'],
  [10, 10.0001e6, 'the mirror grows by 0 kB a day, which the disk can hold for ten years'],
])('the forecast from %d days and %d bytes says: %s', async (days, bytes, text) => {
  const source = await filled({ items: 3 });
  sized(source, days, bytes);
  expect((await diskOf(source)).text).toContain(text);
});

it('the forecast counts what is free on the disk and in the file, and ignores what is older than a month', async () => {
  const source = await filled({ items: 3 });
  sized(source, 10, 20e6);
  execute(
    source.db,
    `INSERT INTO runs (id, kind, state, started_at, finished_at, used_bytes, selection)
       VALUES (0, 'full', 'complete', 1, ${NOW - 40 * DAY_MS}, 1, '{}')`,
  );
  const store = openStore(source.db);
  try {
    expect(growthOf(store, { free: 5e6 })).toEqual({ bytesPerDay: 1e6, daysLeft: (5e6 + store.unusedBytes()) / 1e6 });
    expect(growthOf({ runs: store.runs, unusedBytes: () => 3e6 }, { free: 5e6 })?.daysLeft).toBe(8);
  } finally {
    store.close();
  }
});

it('the forecast is made of what a run notes: the file without its free pages', async () => {
  const source = await filled({ items: 200 });
  makeHoles(source);
  expect((await runHere(['sync'], source.settings, source.directory)).code).toBe(0);
  const store = openStore(source.db);
  try {
    const { first, last } = store.runs.sizes(30 * DAY_MS) ?? {};
    expect(last?.bytes).toBe(store.sizeBytes() - store.unusedBytes());
    expect(first?.bytes).toBeGreaterThan(100_000);
  } finally {
    store.close();
  }
});

const HOUR = 3_600_000;
const EMPTY = '{"num_items":0,"page":1,"per_page":1,"total_pages":0,"items":[]}';

/** What doctor says about a source whose `Date` is off. */
async function examined(aheadMs: number, headers: Readonly<Record<string, string>>): Promise<string> {
  const source = await startRawSource([]);
  const date = () => new Date(Date.now() + aheadMs).toUTCString();
  source.instead = () => ({ status: 200, headers: { date: date(), ...headers }, body: EMPTY });
  const directory = temporaryDirectory();
  return (await runHere(['doctor'], settingsFor(source.url, join(directory, 'a.db')), directory)).stdout;
}

it.each<[number, Readonly<Record<string, string>>, string]>([
  [HOUR, {}, "ahead of this machine's clock\n"],
  [-HOUR, { age: '3600' }, "behind this machine's clock; a proxy or a cache passed it on (Age)\n"],
  [HOUR, { age: '0', via: '1.1 edge' }, "ahead of this machine's clock; a proxy or a cache passed it on (Age, Via)\n"],
])('doctor compares a Date that is %i ms ahead, with %j, and promises nothing', async (aheadMs, headers, text) => {
  const stdout = await examined(aheadMs, headers);
  expect(stdout).toMatch(/note {3}source {5}0 products, answered in [^;]*; its Date is (60|59) min \d+ s /);
  expect(stdout).toContain(text);
  expect(stdout).toContain('If the clock that notes changes is behind it');
  expect(stdout).not.toMatch(/nothing is lost/i);
});

it('doctor does not mention a Date that is right', async () => {
  expect(await examined(0, { via: '1.1 edge' })).toMatch(/ok {5}source {5}0 products, answered in [^;]*\n/);
});

it('doctor checks a sink although the mirror cannot be opened', async () => {
  const directory = temporaryDirectory();
  const db = join(directory, 'catalog.db');
  writeFileSync(db, 'no database');
  const settings = { CATCHWORD_DB: db, CATCHWORD_SINK_FILE: `jsonl:${join(directory, 'changes.jsonl')}` };
  const { stdout } = await runHere(['doctor', '--json'], settings, directory);
  const found = JSON.parse(stdout) as Finding[];
  expect(found.filter(({ check }) => check === 'mirror' || check === 'sink')).toMatchObject([
    { level: 'failed' },
    { level: 'ok', text: expect.stringContaining('changes.jsonl') },
  ]);
});
