import { python, sqlite3, sqliteToolsAvailable } from '@catchword/testing/sqlite-tools';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openHarness } from '../../src/contract/harness.ts';

/** A mirror, and what writes a version of a product into it as a run does; null removes the product. */
function opened() {
  const bench = openHarness();
  onTestFinished(() => bench.close());
  return { db: bench.store.path, put: (vbid: string, body: string | null) => bench.change([{ vbid, body }]) };
}

const RICH = `{"vbid":"A","title":"Tides","subtitle":"of the North","language":"en","edition":2,
  "contributors":[{"name":"Ada Abe","type":"author"},"Bo Cee",{"value":"Di Eff"},{"name":"null"},null,["x"],7],
  "resource_links":{"cover_image":"https://x.example/c.jpg"},"on_sale_date":"2020-01-02","off_sale_date":"2030-01-02",
  "sales_rights":["WORLD",7,null],"exclude_sales_rights":[],
  "identifiers":{"e_isbn_13":"9780000000002","fpid":12,"vbid13_alias":["X","null","Y"],"none":null,"odd":{"a":1},"yes":true},
  "variants":[
    {"sku":"A","duration":"perpetual","prices":[
      {"type":"digital_list_price","value":10.50,"currency":"USD"},{"type":"print_list_price","value":"9.00","currency":"EUR"}],"type":"single","distributable":true},
    {"sku":4711,"duration":180,"type":"rental","distributable":"false","prices":[{"type":"digital_list_price","value":"null","currency":"null"},{"value":"-1"},{"value":"1.2.3"}]},
    {"sku":"none"},"not an object",{"prices":{"value":1}}]}`;
const ODD = `{"vbid":"B","subtitle":"null","edition":0,"language":"","contributors":"unknown","resource_links":"none",
  "on_sale_date":null,"distributable":"false","variants":null,"sales_rights":"US","exclude_sales_rights":{},"identifiers":["Z"]}`;

describe.skipIf(!sqliteToolsAvailable)('with sqlite3 and Python', () => {
  const COLUMNS = 'subtitle, contributors, language, edition, cover_url, on_sale_date, off_sale_date';

  it('the view catalog has the fields that a shop needs, with old and new versions of SQLite', async () => {
    const { db, put } = opened();
    put('A', RICH);
    put('B', ODD);
    put('C', '{"vbid":"C","distributable":false}');
    put('D', '{"vbid":"D","distributable":null,"edition":1.50,"off_sale_date":"soon"}');
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
    put('C', '{"vbid":"C","distributable":true}');
    put('D', '{"vbid":"D","distributable":false}');
    expect(await sqlite3(db, 'SELECT vbid FROM catalog WHERE distributable')).toEqual(['A', 'C']);
  });

  it('the view catalog has the countries as JSON arrays', async () => {
    const { db, put } = opened();
    put('A', RICH);
    put('B', ODD);
    for (const read of [sqlite3, python]) {
      const sql = "SELECT vbid, coalesce(sales_rights, '–'), coalesce(exclude_sales_rights, '–') FROM catalog";
      expect(await read(db, sql)).toEqual(['A|["WORLD","7"]|[]', 'B|–|–']);
      const world = "SELECT vbid FROM catalog, json_each(sales_rights) WHERE value = 'WORLD'";
      expect(await read(db, world)).toEqual(['A']);
    }
  });

  it('the views contributors and identifiers have a row for each of a living product', async () => {
    const { db, put } = opened();
    put('A', RICH);
    put('B', ODD);
    for (const read of [sqlite3, python]) {
      expect(await read(db, "SELECT vbid, position, name, coalesce(type, '–') FROM contributors")).toEqual([
        'A|1|Ada Abe|author',
        'A|2|Bo Cee|–',
        'A|3|Di Eff|–',
        'A|7|7|–',
      ]);
      expect(await read(db, 'SELECT vbid, form, value FROM identifiers')).toEqual([
        'A|e_isbn_13|9780000000002',
        'A|fpid|12',
        'A|vbid13_alias|X',
        'A|vbid13_alias|Y',
      ]);
    }
    put('A', null);
    expect(await sqlite3(db, 'SELECT vbid FROM contributors UNION ALL SELECT vbid FROM identifiers')).toEqual([]);
  });

  it('the view catalog has exactly these columns; a new one comes last', async () => {
    expect(await sqlite3(opened().db, "SELECT group_concat(name, ' ') FROM pragma_table_info('catalog')")).toEqual([
      'vbid title kind format publisher print_isbn e_isbn body first_seen_at changed_at changed_seq' +
        ' id distributable subtitle contributors language edition cover_url on_sale_date off_sale_date' +
        ' sales_rights exclude_sales_rights',
    ]);
  });

  it('the view prices has a row for each price of a living product', async () => {
    const { db, put } = opened();
    put('A', RICH);
    put('B', ODD);
    for (const read of [sqlite3, python]) {
      expect(
        await read(
          db,
          "SELECT vbid, coalesce(sku,'–'), coalesce(type,'–'), coalesce(duration,'–'), coalesce(currency,'–'), coalesce(value,'–'), typeof(value), coalesce(variant_type,'–'), variant_distributable FROM prices",
        ),
      ).toEqual([
        'A|A|digital_list_price|perpetual|USD|10.5|real|single|1',
        'A|A|print_list_price|perpetual|EUR|9|integer|single|1',
        'A|4711|digital_list_price|180|–|–|null|rental|0',
        'A|4711|–|180|–|-1|integer|rental|0',
        'A|4711|–|180|–|–|null|rental|0',
      ]);
      expect(await read(db, "SELECT currency FROM prices WHERE vbid = 'A' AND value < 10 AND value > 0")).toEqual([
        'EUR',
      ]);
    }
    put('A', null);
    expect(await sqlite3(db, 'SELECT count(*) FROM prices')).toEqual(['0']);
  });

  it('the view price_changes has the prices that a change changed, added or dropped', async () => {
    const { db, put } = opened();
    const item = (...prices: readonly (readonly [sku: string, value: unknown, currency?: string])[]) => {
      const variants = prices.map(([sku, value, currency = 'USD']) => ({
        sku,
        duration: 'perpetual',
        prices: [{ type: 'list', currency, value }],
      }));
      return JSON.stringify({ vbid: 'A', variants });
    };
    put('A', item(['A', 10], ['A', 8], ['R', '5.50']));
    put('A', item(['A', 12], ['A', 8], ['R', 5.5]));
    put('A', item(['A', 12], ['A', 9], ['A', 7, 'EUR']));
    put('A', '{"vbid":"A"}');
    put('A', '{"vbid":"A","title":"Tides"}');
    put('A', item(['A', 3]));
    put('A', null);
    put('A', item(['A', 4]));
    put('B', ODD);
    put('B', ODD.replace('"variants":null', '"variants":[7,{"prices":[{"value":"on request"},{"value":1},8]}]'));
    const columns =
      "seq, vbid, coalesce(sku, '–'), coalesce(type, '–'), coalesce(duration, '–'), coalesce(currency, '–')";
    const sql = `SELECT ${columns}, coalesce(before, '–'), coalesce(after, '–') FROM price_changes ORDER BY seq`;
    const A = 'A|A|list|perpetual';
    for (const read of [sqlite3, python]) {
      const found = await read(db, sql);
      expect(found.toSorted((a, b) => a.localeCompare(b))).toEqual(
        [
          `2|${A}|USD|10|12`,
          `3|${A}|EUR|–|7`,
          `3|${A}|USD|8|9`,
          '3|A|R|list|perpetual|USD|5.5|–',
          `4|${A}|EUR|7|–`,
          `4|${A}|USD|12|–`,
          `4|${A}|USD|9|–`,
          `6|${A}|USD|–|3`,
          `8|${A}|USD|3|4`,
          '10|B|–|–|–|–|–|1',
        ].toSorted((a, b) => a.localeCompare(b)),
      );
      expect(await read(db, "SELECT seq, typeof(after) FROM price_changes WHERE seq > 7 AND vbid = 'A'")).toEqual([
        '8|integer',
      ]);
      expect(await read(db, 'SELECT at, run_id FROM price_changes WHERE seq = 2')).toEqual(
        await read(db, 'SELECT at, run_id FROM change_log WHERE seq = 2'),
      );
    }
  });

  it('the view change_log names the changed fields, and keeps removed products', async () => {
    const { db, put } = opened();
    put('A', '{"vbid":"A","v":1.50,"a~/b":1}');
    put('A', '{"vbid":"A","v":2,"c/d":3}');
    put('A', null);
    const log = 'SELECT op, changed, before FROM change_log ORDER BY seq';
    const removed = 'removed|[]|{"vbid":"A","v":2,"c/d":3}';
    expect((await sqlite3(db, log))[2]).toBe(removed);
    put('A', '{"vbid":"A","v":3,"c/d":3}');
    put('A', '{"vbid":"A","v":4}');
    for (const read of [sqlite3, python]) {
      const [created, updated, ...rest] = await read(db, log);
      expect(created).toMatch(/^created\|\[\]\|(None)?$/);
      expect(updated).toBe('updated|["/v","/a~0~1b","/c~1d"]|{"v":1.50,"a~/b":1}');
      expect(rest[0]).toBe(removed);
      expect(rest[1]).toMatch(/^restored\|\["\/v"\]\|\{"v":2\}$/);
    }
  });
});
