import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { execute, query } from '@catchword/testing/sqlite';
import { sqlite3, sqliteToolsAvailable } from '@catchword/testing/sqlite-tools';
import { describe, expect, it } from 'vitest';
import { openStore, type Store } from '../../src/store/store.ts';
import { runHere } from '../support/in-process.ts';
import { load } from '../support/load.ts';
import { catalogOf, expectExactLog, standIn, truthOf, withoutWithdrawn } from '../support/mirror.ts';
import { type Place, place } from '../support/place.ts';

/*
 * Mirrors of every schema, as the program wrote them that brought the schema (make-mirror.ts). The first one is of 0.1.0.
 */

const MIRRORS = fileURLToPath(new URL('mirrors/', import.meta.url));
const JOURNAL = fileURLToPath(new URL('../../drizzle/meta/_journal.json', import.meta.url));
const TAGS = readdirSync(MIRRORS).map((file) => file.replace('.db.gz', ''));

/** The rows of tables that every version has, or that this one has; columns that later versions added are left out. */
function rowsOf(db: string, table: string, columns: readonly string[]): unknown[] {
  const order = columns[0] ?? '';
  return query(db, `SELECT ${columns.join(', ')} FROM ${table} ORDER BY ${order}, ${columns[1] ?? order}`);
}

/** What an upgrade must keep, by table. */
const KEPT: Record<string, readonly string[]> = {
  products: ['id', 'vbid', 'title', 'publisher', 'changed_at', 'changed_seq', 'removed_at', 'body'],
  changes: ['seq', 'at', 'run_id', 'op', 'product_id', 'prev_seq', 'before', 'added'],
  runs: ['id', 'kind', 'state', 'proof', 'created', 'updated', 'removed', 'restored', 'rejected', 'requests', 'error'],
  checkpoints: ['run_id', 'pass', 'page', 'per_page', 'items', 'ids'],
  rejected: ['run_id', 'pass', 'page', 'position', 'reason', 'body'],
  held_removals: ['run_id', 'product_id'],
  missing: ['product_id', 'runs'],
  sinks: ['id', 'name', 'kind', 'address', 'identity', 'state', 'generation', 'cursor', 'delivered'],
  parked: ['sink_id', 'seq', 'vbid', 'state', 'reason', 'change'],
  actions: ['id', 'at', 'who', 'action', 'target', 'state', 'outcome'],
  eras: ['first_seq', 'id'],
  mirror: ['id', 'incarnation', 'watermark', 'living'],
};

function keptOf(db: string): Record<string, unknown> {
  const tables = query<{ name: string }>(db, `SELECT name FROM sqlite_schema WHERE type = 'table'`);
  const names = tables.map(({ name }) => name).filter((name) => name in KEPT);
  return Object.fromEntries(names.map((name) => [name, rowsOf(db, name, KEPT[name] ?? [])]));
}

function upgraded<T>(db: string, work: (store: Store) => T): T {
  const store = openStore(db, { mustExist: true });
  try {
    return work(store);
  } finally {
    store.close();
  }
}

/** A sandbox, and another mirror in the place of its mirror. @param file compressed, in the folder of the mirrors */
async function placedFrom(file: string): Promise<Place> {
  const made = await place({ items: 8 });
  writeFileSync(made.db, gunzipSync(readFileSync(join(MIRRORS, file))), { mode: 0o600 });
  return made;
}

/** A sandbox, and the mirror of an earlier version in the place of its mirror. */
const placed = (tag: string): Promise<Place> => placedFrom(`${tag}.db.gz`);

it('every schema has a mirror', () => {
  const { entries } = JSON.parse(readFileSync(JOURNAL, 'utf8')) as { entries: { tag: string }[] };
  expect(TAGS, 'write the newest one: npm run mirror').toEqual(entries.map(({ tag }) => tag));
});

describe.each(TAGS)('the schema %s', (tag) => {
  it('an older mirror is upgraded, and keeps everything', async () => {
    const { db } = await placed(tag);
    const before = keptOf(db);
    const held = query<{ id: number }>(db, "SELECT id FROM runs WHERE state = 'held'").map(({ id }) => id);
    expect(query(db, 'SELECT 1 FROM products WHERE removed_at IS NOT NULL')).not.toEqual([]);
    upgraded(db, (store) => {
      expect(store.checkFile(true)).toEqual([]);
      expect(store.runs.held().map(({ id }) => id)).toEqual(held);
      const [file, shop] = store.sinks.list();
      expect([file?.name, file?.state, shop?.name, shop?.state]).toEqual(['file', 'paused', 'shop', 'running']);
      const parked = store.sinks.parked(shop?.id ?? 0);
      expect(parked.map(({ state, change }) => [state, change.era])).toEqual([['refused', expect.any(String)]]);
    });
    expect(keptOf(db)).toMatchObject(before);
    expect(query(db, 'PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }]);
  });

  it('an older mirror answers every view and every command that reads', async () => {
    const { db, settings, directory } = await placed(tag);
    const former = catalogOf(db);
    upgraded(db, () => {});
    expect(catalogOf(db)).toEqual(former);
    for (const view of ['catalog', 'prices', 'change_log', 'run_log', 'rejected_items']) {
      const rows = query(db, `SELECT * FROM ${view}`);
      if (view !== 'rejected_items') expect([view, rows.length > 0]).toEqual([view, true]);
    }
    const [{ vbid } = { vbid: '' }] = query<{ vbid: string }>(
      db,
      'SELECT vbid FROM change_log GROUP BY vbid ORDER BY count(*) DESC LIMIT 1',
    );
    const commands = [
      ['status'],
      ['runs'],
      ['run', '4'],
      ['product', vbid, '--history'],
      ['changes'],
      ['sink', 'list'],
    ];
    for (const command of commands) {
      const { code, stdout } = await runHere([...command, '--json'], settings, directory);
      expect([command, code, stdout]).toEqual([command, 0, expect.stringMatching(/^[[{]/)]);
    }
  });

  it.skipIf(!sqliteToolsAvailable).each([
    ['', ''],
    [', also if a table is missing', 'DROP TABLE eras'],
  ])(
    'an older mirror ends a program that has a mirror of today open if it is restored into that%s',
    async (_, drop) => {
      const { db, directory } = await placed(tag);
      const backup = join(directory, 'backup.db');
      writeFileSync(backup, readFileSync(db));
      execute(backup, drop);
      rmSync(db);
      const store = openStore(db);
      await sqlite3(db, `.restore ${backup}`);
      const replaced = expect.objectContaining({ code: 'MIRROR_REPLACED' }) as Error;
      expect(() => store.check()).toThrow(replaced);
      expect(() => store.request(() => {})).toThrow(replaced);
      const now = query(db, 'SELECT count(*) AS count FROM __drizzle_migrations');
      expect(now).toEqual(query(backup, 'SELECT count(*) AS count FROM __drizzle_migrations'));
    },
  );

  it('an older mirror is backed up as it is, and restored as a mirror of today', async () => {
    const { db, settings, directory, sandbox } = await placed(tag);
    const before = keptOf(db);
    expect(await runHere(['backup', 'backup.db'], settings, directory)).toMatchObject({ code: 0, stderr: '' });
    const migrations = 'SELECT hash FROM __drizzle_migrations';
    for (const path of [db, join(directory, 'backup.db')]) {
      expect(query(path, migrations)).toHaveLength(TAGS.indexOf(tag) + 1);
      expect(keptOf(path)).toEqual(before);
    }
    upgraded(db, () => {});
    expect(await runHere(['restore', 'backup.db'], settings, directory)).toMatchObject({ code: 0, stderr: '' });
    // Another incarnation, and sinks that are filled again.
    const tables = Object.entries(before).filter(([name]) => !['mirror', 'sinks', 'parked'].includes(name));
    expect(keptOf(db)).toMatchObject(Object.fromEntries(tables));
    expect(query(db, migrations)).toHaveLength(TAGS.length);
    expectExactLog(db);
    standIn(db, sandbox.url);
    expect(await load(settings, 'delta')).toMatchObject({ kind: 'full' });
    expect(await load(settings, 'delta')).toMatchObject({ kind: 'delta' });
  });

  it('an older mirror has an exact log, and goes on with a delta and a full run', async () => {
    const { db, settings: own, sandbox } = await placed(tag);
    // The changes of the samples grow older than the log is kept.
    const settings = { ...own, CATCHWORD_LOG_RETENTION: '36500d' };
    upgraded(db, () => {});
    standIn(db, sandbox.url);
    const last = expectExactLog(db);
    sandbox.catalog.mutate({ create: 3, update: 2, seed: 9 });
    expect(await load(settings, 'delta')).toMatchObject({ kind: 'delta', state: 'complete' });
    expect(expectExactLog(db)).toBeGreaterThan(last);
    expect((await load(settings, 'full')).state).toBe('complete');
    expect(withoutWithdrawn(catalogOf(db))).toEqual(await truthOf(sandbox.url));
    expectExactLog(db);
  });
});

it('a mirror of a newer version is refused, and not changed', async () => {
  const { db, settings, directory } = await placed(TAGS.at(-1) ?? '');
  execute(db, `INSERT INTO __drizzle_migrations (hash, created_at) VALUES ('x', 9999999999999)`);
  const before = readFileSync(db);
  for (const command of [['status'], ['sync'], ['backup', 'copy.db']]) {
    const { code, stderr } = await runHere(command, settings, directory);
    expect(code).toBe(2);
    expect(stderr).toMatch(/was written by a newer catchword \[MIRROR_UNUSABLE\]\nhint {2}Upgrade catchword/);
  }
  expect(readFileSync(db).equals(before)).toBe(true);
});

it('a mirror of an unreleased version is refused, and not changed', async () => {
  const { db, settings, directory } = await placedFrom('../unreleased.db.gz');
  const before = readFileSync(db);
  const other = join(directory, 'other.db');
  const commands: [command: string[], db: string][] = [
    [['status'], db],
    [['sync'], db],
    [['daemon'], db],
    [['doctor'], db],
    [['backup', 'copy.db'], db],
    [['restore', db], other],
  ];
  for (const [command, mirror] of commands) {
    const { stdout, stderr } = await runHere(command, { ...settings, CATCHWORD_DB: mirror }, directory);
    expect([command, stdout + stderr]).toEqual([
      command,
      expect.stringMatching(
        /was written by a catchword before its first release, 0\.1\.0.*[\s\S]*npx catchword sync\. Or/,
      ),
    ]);
  }
  expect((await runHere(['sync'], settings, directory)).code).toBe(2);
  expect(readFileSync(db).equals(before)).toBe(true);
  expect(readdirSync(directory).filter((name) => /copy|other|-wal|-shm/.test(name))).toEqual([]);
});
