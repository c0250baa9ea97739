import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { difference } from '../../src/catalog/content.ts';
import { objectMembers } from '../../src/catalog/json-text.ts';
import { productOf } from '../../src/catalog/product.ts';
import { drizzle, migrate } from '../../src/store/drizzle.ts';
import { writeUnder } from '../../src/store/hold-lease.ts';
import { keepStatements } from '../../src/store/statements.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { temporaryDirectory } from '../support/mirror.ts';
import { query } from '../support/sqlite.ts';
import { python, sqlite3, sqliteToolsAvailable } from '../support/sqlite-tools.ts';

const MIGRATIONS = fileURLToPath(new URL('../../drizzle', import.meta.url));

type Fields = Readonly<Record<string, unknown>>;

/** Writes items as a run does: creations, updates and, after a removal, restorations. */
function put(store: Store, vbid: string, text: string): void {
  const product = productOf(vbid, JSON.parse(text) as Fields, text);
  writeUnder(store.keeperLease, Date.now(), ({ products, changes }) => {
    const seq = changes.lastSeq() + 1;
    const known = products.find(vbid);
    if (known === undefined) {
      const id = products.lastId() + 1;
      products.insert([{ id, seq, product }], seq);
      changes.appendCreated(seq, id, 1, 1, seq);
    } else {
      const op = known.removed ? 'restored' : 'updated';
      const change = difference(known.body, text);
      changes.append([{ seq, op, productId: known.id, prevSeq: known.changedSeq, ...change }], 1, seq);
      products.update(known, product, seq, seq);
    }
  });
}

function remove(store: Store, vbid: string): void {
  writeUnder(store.keeperLease, Date.now(), ({ removals }) =>
    removals.remove([store.products.get(vbid)?.id ?? 0], 1, 9),
  );
}

const RICH = `{"vbid":"A","title":"Tides","subtitle":"of the North","language":"en","edition":2,
  "contributors":[{"name":"Ada Abe","type":"author"},"Bo Cee",{"value":"Di Eff"},{"name":"null"},null,["x"],7],
  "resource_links":{"cover_image":"https://x.example/c.jpg"},"on_sale_date":"2020-01-02","off_sale_date":"2030-01-02",
  "variants":[
    {"sku":"A","duration":"perpetual","prices":[
      {"type":"digital_list_price","value":10.50,"currency":"USD"},{"type":"print_list_price","value":"9.00","currency":"EUR"}]},
    {"sku":4711,"duration":180,"prices":[{"type":"digital_list_price","value":"null","currency":"null"},{"value":"-1"},{"value":"1.2.3"}]},
    {"sku":"none"},"not an object",{"prices":{"value":1}}]}`;
const ODD = `{"vbid":"B","subtitle":"null","edition":0,"language":"","contributors":"unknown","resource_links":"none",
  "on_sale_date":null,"distributable":"false","variants":null}`;

describe.skipIf(!sqliteToolsAvailable)('the view', () => {
  const COLUMNS = 'subtitle, contributors, language, edition, cover_url, on_sale_date, off_sale_date';

  it('catalog has the fields that a shop needs, with old and new versions of SQLite', async () => {
    const db = join(temporaryDirectory(), 'catalog.db');
    const store = openStore(db);
    put(store, 'A', RICH);
    put(store, 'B', ODD);
    put(store, 'C', '{"vbid":"C","distributable":false}');
    put(store, 'D', '{"vbid":"D","distributable":null,"edition":1.50,"off_sale_date":"soon"}');
    for (const read of [sqlite3, python]) {
      const rows = await read(
        db,
        `SELECT vbid, coalesce(${COLUMNS.replaceAll(', ', ",'–') || '|' || coalesce(")},'–') FROM catalog`,
      );
      expect(rows).toEqual([
        'A|of the North|Ada Abe; Bo Cee; Di Eff; 7|en|2|https://x.example/c.jpg|2020-01-02|2030-01-02',
        'B|–|–|–|0|–|–|–',
        'C|–|–|–|–|–|–|–',
        'D|–|–|–|1.5|–|–|soon',
      ]);
      expect(await read(db, 'SELECT id, vbid, distributable FROM catalog')).toEqual([
        '1|A|1',
        '2|B|0',
        '3|C|0',
        '4|D|1',
      ]);
      expect(await read(db, 'SELECT vbid FROM catalog WHERE distributable')).toEqual(['A', 'D']);
    }
    put(store, 'C', '{"vbid":"C","distributable":true}');
    put(store, 'D', '{"vbid":"D","distributable":false}');
    expect(await sqlite3(db, 'SELECT vbid FROM catalog WHERE distributable')).toEqual(['A', 'C']);
    store.close();
  });

  it('catalog keeps its first columns in their order', async () => {
    const db = join(temporaryDirectory(), 'catalog.db');
    openStore(db).close();
    expect(await sqlite3(db, "SELECT group_concat(name, ' ') FROM pragma_table_info('catalog')")).toEqual([
      'vbid title kind format publisher print_isbn e_isbn body first_seen_at changed_at changed_seq' +
        ' id distributable subtitle contributors language edition cover_url on_sale_date off_sale_date',
    ]);
  });

  it('prices has a row for each price of a living product', async () => {
    const db = join(temporaryDirectory(), 'catalog.db');
    const store = openStore(db);
    put(store, 'A', RICH);
    put(store, 'B', ODD);
    for (const read of [sqlite3, python]) {
      expect(
        await read(
          db,
          "SELECT vbid, coalesce(sku,'–'), coalesce(type,'–'), coalesce(duration,'–'), coalesce(currency,'–'), coalesce(value,'–'), typeof(value) FROM prices",
        ),
      ).toEqual([
        'A|A|digital_list_price|perpetual|USD|10.5|real',
        'A|A|print_list_price|perpetual|EUR|9|integer',
        'A|4711|digital_list_price|180|–|–|null',
        'A|4711|–|180|–|-1|integer',
        'A|4711|–|180|–|–|null',
      ]);
      expect(await read(db, "SELECT currency FROM prices WHERE vbid = 'A' AND value < 10 AND value > 0")).toEqual([
        'EUR',
      ]);
    }
    remove(store, 'A');
    expect(await sqlite3(db, 'SELECT count(*) FROM prices')).toEqual(['0']);
    store.close();
  });

  it('change_log names the changed fields, and keeps removed products', async () => {
    const db = join(temporaryDirectory(), 'catalog.db');
    const store = openStore(db);
    put(store, 'A', '{"vbid":"A","v":1.50,"a~/b":1}');
    put(store, 'A', '{"vbid":"A","v":2,"c/d":3}');
    remove(store, 'A');
    const log = 'SELECT op, changed, before FROM change_log ORDER BY seq';
    const removed = 'removed|[]|{"vbid":"A","v":2,"c/d":3}';
    expect((await sqlite3(db, log))[2]).toBe(removed);
    put(store, 'A', '{"vbid":"A","v":3,"c/d":3}');
    put(store, 'A', '{"vbid":"A","v":4}');
    for (const read of [sqlite3, python]) {
      const [created, updated, ...rest] = await read(db, log);
      expect(created).toMatch(/^created\|\[\]\|(None)?$/);
      expect(updated).toBe('updated|["/v","/a~0~1b","/c~1d"]|{"v":1.50,"a~/b":1}');
      expect(rest[0]).toBe(removed);
      expect(rest[1]).toMatch(/^restored\|\["\/v"\]\|\{"v":2\}$/);
    }
    store.close();
  });
});

/** A mirror with the tables of the first migrations only. */
function copyToOlder(db: string, directory: string, migrations: number): string {
  const folder = join(directory, 'migrations');
  mkdirSync(join(folder, 'meta'), { recursive: true });
  const journal = JSON.parse(readFileSync(join(MIGRATIONS, 'meta/_journal.json'), 'utf8')) as {
    entries: { tag: string }[];
  };
  const entries = journal.entries.slice(0, migrations);
  writeFileSync(join(folder, 'meta/_journal.json'), JSON.stringify({ ...journal, entries }));
  for (const { tag } of entries) cpSync(join(MIGRATIONS, `${tag}.sql`), join(folder, `${tag}.sql`));
  const older = join(directory, 'older.db');
  const sqlite = new Database(older);
  migrate(drizzle(keepStatements(sqlite)), { migrationsFolder: folder });
  sqlite.exec(`PRAGMA application_id = 0x63747764; ATTACH '${db}' AS newer`);
  const tables = sqlite
    .prepare<[], string>(
      "SELECT name FROM newer.sqlite_schema WHERE type = 'table' AND name IN ('products', 'changes', 'mirror', 'lease')",
    )
    .pluck()
    .all();
  for (const table of tables) {
    const columns = sqlite
      .prepare<[string], string>("SELECT name FROM pragma_table_info(?, 'main')")
      .pluck()
      .all(table)
      .join(', ');
    sqlite.exec(`INSERT INTO main.${table} (${columns}) SELECT ${columns} FROM newer.${table}`);
  }
  sqlite.exec("UPDATE main.changes SET before = '{}' WHERE op = 2; DETACH newer");
  sqlite.close();
  return older;
}

function sorted(text: string): [string, string][] {
  return [...objectMembers(text)].sort(([a], [b]) => (a < b ? -1 : 1));
}

it('an upgraded mirror has the same rows in every view', () => {
  const directory = temporaryDirectory();
  const db = join(directory, 'catalog.db');
  const store = openStore(db);
  for (const vbid of ['A', 'B', 'E']) put(store, vbid, `{"vbid":"${vbid}","title":"as it was","sub~/title":1}`);
  put(store, 'A', RICH);
  put(store, 'B', ODD);
  for (const vbid of ['A', 'E']) remove(store, vbid);
  put(store, 'A', '{"vbid":"A","new/field":5,"title":"again"}');
  remove(store, 'A');
  put(store, 'A', RICH.replace('"title":"Tides"', '"title":"Last","new/field":10.50'));
  store.close();
  const older = copyToOlder(db, directory, 5);
  openStore(older).close();
  const rows = (path: string, view: string) => {
    return query(path, `SELECT * FROM ${view} ORDER BY 1, 2`);
  };
  for (const view of ['catalog', 'prices']) {
    expect(rows(older, view).length).toBeGreaterThan(1);
    expect(rows(older, view)).toEqual(rows(db, view));
  }
  const removals = (path: string) =>
    (rows(path, 'change_log') as { op: string; vbid: string; before: string }[]).filter(({ op }) => op === 'removed');
  expect(removals(older).map(({ vbid }) => vbid)).toEqual(['A', 'E', 'A']);
  for (const [index, { before }] of removals(older).entries()) {
    // Fields may come in another order than the source's.
    expect(sorted(before)).toEqual(sorted(removals(db)[index]?.before ?? ''));
  }
});
