// @module-tag stores

import type { Digests } from '@catchword/sink-kit/sink';
import { jsonbText, numericText } from '@catchword/sink-sql/postgres/jsonb-text';
import { logOf } from '@catchword/testing/log-of';
import { connectMariadb, mariadbAvailable, startMariadb } from '@catchword/testing/mariadb';
import { postgresAvailable, startPostgres, usePostgres } from '@catchword/testing/postgres';
import type { ServerProcess } from '@catchword/testing/server';
import fc from 'fast-check';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { until } from '../../../src/contract/harness.ts';
import { compared } from '../../../test/relay/compared.ts';
import { configAt, feederAt, feeding, fillEnded, movable, NEVER } from '../../../test/relay/feeding.ts';
import { mysqlTarget, postgresTarget } from '../../../test/relay/targets.ts';
import { rawNumber, rawObject, rawString } from '../../catalog/test/raw-json.ts';

/** A book of about one and a half kilobytes, with prices, people and identifiers. */
function book(number: number, title = `Title ${number}`) {
  const vbid = `V${String(number).padStart(7, '0')}`;
  const prices = ['USD', 'EUR'].map((currency) => ({ type: 'digital_list_price', currency, value: `${number}.50` }));
  const body = {
    vbid,
    title,
    distributable: true,
    sales_rights: ['US', 'WORLD'],
    contributors: [{ name: `Zoë ${number}`, type: 'author' }, { name: 'B' }],
    identifiers: { e_isbn_13: [`978${number}`, 'x'], print: `979${number}` },
    variants: [{ sku: 's1', type: 'single', duration: 'perpetual', prices }],
    metadata: { description: 'A book. '.repeat(120), page_count: 1.0e2 },
  };
  return { vbid, body: JSON.stringify(body) };
}

const shelf = (count: number, title?: string) => Array.from({ length: count }, (_, at) => book(at, title));

const EQUAL = { differing: 0, missing: 0, extra: 0, repaired: 0, held: 0, notJudged: 0, error: null, examples: [] };

describe.skipIf(!postgresAvailable)('texts of PostgreSQL', { tags: ['stores'] }, () => {
  const postgres = usePostgres();

  it('jsonbText and numericText equal what a server prints', async () => {
    const texts = fc.sample(rawObject(3), 5_000).filter((text) => !/\\ud800/.test(text));
    const { rows } = await postgres.client.query<{ text: string }>(
      'SELECT (json::jsonb)::text AS text FROM unnest($1::text[]) WITH ORDINALITY AS t (json, at) ORDER BY at',
      [texts],
    );
    expect(texts.length).toBeGreaterThan(1_000);
    for (const [at, text] of texts.entries()) expect(jsonbText(text)).toBe(rows[at]?.text);
    const escapes = [
      '{"\\u0001\\b\\f\\n\\r\\t\\u001f\\u007f\\u2028":"\\u0001\\"\\\\\\/é😀"}',
      '[-0,-0.0,0e5,0.00e-2,1.50e1]',
    ];
    const numbers = [...fc.sample(rawNumber, 5_000), '1e-7', '0.1', ' 12.50 ', '.5', '5.', '+7', '-.25e1'];
    const printed = await postgres.client.query<{ text: string }>(
      `SELECT n::numeric::text AS text FROM unnest($1::text[]) WITH ORDINALITY AS t (n, at)
       UNION ALL SELECT (j::jsonb)::text FROM unnest($2::text[]) AS s (j)`,
      [numbers, escapes],
    );
    const expected = printed.rows.map(({ text }) => text);
    expect([...numbers.map(numericText), ...escapes.map(jsonbText)]).toEqual(expected);
  });
});

/** A database whose tables are compared, and its own SQL. */
interface Database {
  readonly name: string;
  readonly isAvailable: boolean;
  readonly start: () => Promise<ServerProcess>;
  readonly target: typeof mysqlTarget;
  /** Connects. @returns what runs a statement, and what ends the connection */
  readonly connect: (port: number) => Promise<readonly [(sql: string) => Promise<unknown>, () => Promise<void>]>;
  readonly second: string;
  /** A table of numbers `n`. */
  readonly numbers: (to: number) => string;
  readonly concat: string;
  readonly newBody: string;
  /** A title in an index. */
  readonly title: string;
  readonly trigger: (table: string) => readonly string[];
}

const DATABASES: readonly Database[] = [
  {
    name: 'PostgreSQL',
    isAvailable: postgresAvailable,
    start: () => startPostgres({ settings: ['fsync=off'] }),
    target: postgresTarget,
    connect: async (port) => {
      const client = new pg.Client({ connectionString: `postgres://postgres@127.0.0.1:${port}/postgres` });
      await client.connect();
      return [(sql) => client.query(sql), () => client.end()];
    },
    second: "interval '1 s'",
    numbers: (to) => `generate_series(1, ${to})`,
    concat: "'E' || n",
    newBody: "jsonb_set(body, '{metadata,page_count}', '101')",
    title: 'title',
    trigger: (table) => [
      `CREATE FUNCTION spoil_${table}() RETURNS trigger LANGUAGE plpgsql
       AS $$ BEGIN NEW.title := 'spoiled'; RETURN NEW; END $$`,
      `CREATE TRIGGER spoil BEFORE UPDATE ON ${table} FOR EACH ROW EXECUTE FUNCTION spoil_${table}()`,
    ],
  },
  {
    name: 'MariaDB',
    isAvailable: mariadbAvailable,
    start: () => startMariadb(),
    target: mysqlTarget,
    connect: async (port) => {
      const client = await connectMariadb(port);
      return [(sql) => client.query(sql), () => client.end()];
    },
    second: 'INTERVAL 1 SECOND',
    numbers: (to) => `(SELECT seq AS n FROM seq_1_to_${to})`,
    concat: "concat('E', n)",
    // Another spelling of the same number.
    newBody: `replace(body, '"page_count":100', '"page_count":1e2')`,
    title: 'title(50)',
    trigger: (table) => [`CREATE TRIGGER spoil BEFORE UPDATE ON ${table} FOR EACH ROW SET NEW.title = 'spoiled'`],
  },
];

describe.each(DATABASES.filter(({ isAvailable }) => isAvailable))('comparing a table of $name', (database) => {
  let server: ServerProcess;
  let run: (sql: string) => Promise<unknown>;
  let disconnect: () => Promise<void>;
  beforeAll(async () => {
    server = await database.start();
    [run, disconnect] = await database.connect(server.port);
  });
  afterAll(async () => {
    await disconnect();
    await server.stop();
  });

  async function shop(count: number, options = '', limit = 100, view: Parameters<typeof configAt>[2] = {}) {
    const { harness, target } = await feeding(database.target(server.port, options));
    harness.change(shelf(count));
    const repaired: string[] = [];
    const log = logOf(() => ({ vbid, reason, differs }, message) => {
      if (/was repaired$/.test(message)) repaired.push([reason, vbid?.slice(-1), ...(differs ?? [])].join(' '));
    });
    const config = configAt(target.url, undefined, view);
    harness.start(config, { removalLimit: () => limit, log });
    await harness.caughtUp();
    await fillEnded(harness, config);
    return { harness, target, table: target.table, repaired };
  }

  it.each(['', '&removals=delete'])('finds and repairs each kind of damage%s', async (options) => {
    const { harness, table, repaired } = await shop(60, options);
    await harness.deliver([{ vbid: book(50).vbid, body: null }]);
    expect(await compared(harness)).toMatchObject({ ...EQUAL, same: 59, deep: true });
    expect(await compared(harness, { deep: false })).toMatchObject({
      ...EQUAL,
      same: 59,
      compared: 'keys and positions',
    });
    const key = (at: number): string => `'${book(at).vbid}'`;
    await run(`UPDATE ${table} SET title = 'x' WHERE vbid = ${key(1)}`);
    await run(`UPDATE ${table}_prices SET value = value + 1 WHERE vbid = ${key(2)} AND currency = 'EUR'`);
    await run(`UPDATE ${table} SET seq = seq + 1000 WHERE vbid = ${key(3)}`);
    await run(`UPDATE ${table} SET removed_at = now() WHERE vbid = ${key(4)}`);
    await run(`DELETE FROM ${table} WHERE vbid = ${key(5)}`);
    await run(`UPDATE ${table} SET body = ${database.newBody} WHERE vbid = ${key(6)}`);
    await run(`UPDATE ${table} SET changed_at = changed_at + ${database.second} WHERE vbid = ${key(7)}`);
    await run(`INSERT INTO ${table}_identifiers (vbid, form, value) VALUES (${key(8)}, 'e', '1')`);
    await run(`INSERT INTO ${table} (vbid, body, seq, changed_at) VALUES ('EXTRA', '{}', 1, now())`);
    const quick = await compared(harness, { deep: false });
    expect(quick).toMatchObject({ differing: 1, missing: 2, extra: 1, same: 56 });
    expect(quick.examples).toContainEqual({ vbid: book(3).vbid, difference: 'differing', differs: ['seq'] });
    const found = { ...EQUAL, differing: 6, missing: 2, extra: 1, same: 51 };
    const { examples, ...counts } = await compared(harness);
    expect({ ...counts, examples: [] }).toMatchObject(found);
    const named = examples.map(({ vbid, difference, differs }) => [difference, vbid.slice(-1), ...differs].join(' '));
    expect(named.toSorted()).toEqual([
      'differing 1 title',
      'differing 2 rows of prices',
      'differing 3 seq',
      'differing 6 body',
      'differing 7 changed_at',
      'differing 8 rows of identifiers',
      'extra A',
      'missing 4',
      'missing 5',
    ]);
    expect(await compared(harness, { repair: true })).toMatchObject({
      differing: 6,
      missing: 2,
      extra: 1,
      repaired: 9,
    });
    expect(repaired.toSorted()).toEqual(named.toSorted());
    expect(await compared(harness)).toMatchObject({ ...EQUAL, same: 59 });
    await harness.deliver(shelf(3, 'later'));
    expect(await compared(harness)).toMatchObject({ ...EQUAL, same: 59 });
  });

  it.each(['', '&removals=delete'])('finds and removes parts of a product that is not there%s', async (options) => {
    const { harness, table } = await shop(10, options);
    await harness.deliver([{ vbid: book(4).vbid, body: null }]);
    const row = `SELECT seq, removed_at FROM ${table} WHERE vbid = '${book(4).vbid}'`;
    const text = (_: string, value: unknown) => (typeof value === 'bigint' ? String(value) : value);
    const tombstone = async () => JSON.stringify(await run(row), text);
    const before = await tombstone();
    // Of a removed product, of no product, and behind the last key of the table.
    for (const vbid of [book(4).vbid, 'A', 'Z']) {
      await run(`INSERT INTO ${table}_identifiers (vbid, form, value) VALUES ('${vbid}', 'e', '1')`);
      await run(`INSERT INTO ${table}_contributors (vbid, name) VALUES ('${vbid}', 'x')`);
    }
    // Nothing but parts is left of a product that should be there.
    await run(`UPDATE ${table} SET removed_at = now() WHERE vbid = '${book(5).vbid}'`);
    expect(await compared(harness, { deep: false })).toMatchObject({ differing: 0, missing: 1, extra: 0, same: 8 });
    const { examples, ...found } = await compared(harness);
    expect(found).toMatchObject({ differing: 0, missing: 1, extra: 3, same: 8 });
    expect(examples.map(({ vbid, difference }) => `${difference} ${vbid}`).toSorted()).toEqual(
      ['extra A', 'extra Z', `extra ${book(4).vbid}`, `missing ${book(5).vbid}`].toSorted(),
    );
    expect(await compared(harness, { repair: true })).toMatchObject({ missing: 1, extra: 3, repaired: 4, error: null });
    expect(await compared(harness)).toMatchObject({ ...EQUAL, same: 9 });
    expect(await tombstone()).toBe(before);
  });

  it('keeps extra rows beyond the removal limit until it may remove all', async () => {
    const { harness, table } = await shop(30, '', 3);
    await run(`INSERT INTO ${table} (vbid, body, seq, changed_at)
      SELECT ${database.concat}, '{}', 1, now() FROM ${database.numbers(5)} AS n`);
    await run(`UPDATE ${table} SET title = 'x' WHERE vbid = '${book(1).vbid}'`);
    expect(await compared(harness, { repair: true })).toMatchObject({
      differing: 1,
      extra: 5,
      repaired: 1,
      held: 5,
      error: null,
    });
    expect(await compared(harness)).toMatchObject({ differing: 0, extra: 5, held: 0 });
    expect(await compared(harness, { repair: true, removesAll: true })).toMatchObject({
      extra: 5,
      repaired: 5,
      held: 0,
    });
    expect(await compared(harness)).toMatchObject({ ...EQUAL, same: 30 });
  });

  it('compares what a view shows, without positions', async () => {
    const view = { where: "title <> 'Title 3'", fields: 'title, distributable' };
    const { harness, table } = await shop(20, '', 100, view);
    // The view hides this change, so the row keeps its position.
    const other = JSON.parse(book(5).body) as object;
    await harness.deliver([{ vbid: book(5).vbid, body: JSON.stringify({ ...other, metadata: {} }) }]);
    expect(await compared(harness, { deep: false })).toMatchObject({ ...EQUAL, same: 19, compared: 'keys' });
    expect(await compared(harness)).toMatchObject({ ...EQUAL, same: 19 });
    await run(`UPDATE ${table} SET body = '{}' WHERE vbid = '${book(5).vbid}'`);
    await run(`INSERT INTO ${table} (vbid, body, seq, changed_at) VALUES ('${book(3).vbid}', '{}', 1, now())`);
    expect(await compared(harness, { repair: true })).toMatchObject({ differing: 1, extra: 1, repaired: 2 });
    expect(await compared(harness)).toMatchObject({ ...EQUAL, same: 19 });
  });

  it('has equal texts of odd keys, numbers and characters on both sides', async () => {
    const keys = ['a', 'A', 'a ', 'é', 'e\u0301', '🙂', 'ü'.repeat(255), `${'ü'.repeat(254)}u`];
    const odd = fc.record({
      title: rawString,
      price: rawNumber,
      double: fc.double({ noDefaultInfinity: true, noNaN: true }),
      people: fc.array(rawString, { maxLength: 4 }),
      more: rawObject(2),
    });
    const texts = fc.sample(odd, 400).map(({ title, price, double, people, more }, at) => {
      const vbid = keys[at] ?? `K${at}`;
      const prices = [price, String(double), `"${double}"`, '1.50', '9007199254740991', '-0', '1e-7', '1e15'];
      return {
        vbid,
        body: `{"vbid": ${JSON.stringify(vbid)}, "title":${title}, "more":${more}, "contributors":[${people.join()}],
          "sales_rights":[${people.join()}], "identifiers":{"isbn":${title}, "n":${price}},
          "variants":[{"sku":${price},"prices":[${prices.map((value) => `{"currency":"EUR","value":${value}}`).join()}]}]}`,
      };
    });
    const readable = texts.filter(({ body }) => !body.includes('\\ud800'));
    expect(readable.length).toBeGreaterThan(100);
    const { harness } = await shop(0);
    await harness.deliver(readable);
    expect(await compared(harness, { deep: false })).toMatchObject({ ...EQUAL, notJudged: harness.parked().length });
    expect(await compared(harness)).toMatchObject({ ...EQUAL, notJudged: harness.parked().length });
    expect(harness.parked().length).toBeLessThan(readable.length / 2);
  });

  it('ends with an error when another process has moved the cursor', async () => {
    const { harness, target } = await shop(3);
    await harness.stop();
    const sink = await configAt(target.url).make();
    onTestFinished(() => sink.close());
    const { generation, cursor } = harness.sink();
    const believed = { incarnation: feederAt(harness), generation, cursor, at: 0, late: 0 };
    const mark = (await sink.open(believed, cursor, NEVER)) ?? believed;
    const { sums } = sink.digests as Required<Digests>;
    const listing = { whole: true, positions: true };
    expect((await sums(listing, mark, NEVER)).size).toBe(3);
    await run(`UPDATE catchword_cursor SET late = 7 WHERE table_name LIKE '%.${target.table}'`);
    await expect(sums(listing, mark, NEVER)).rejects.toThrow(`another process moved the cursor of ${target.table}`);
  });

  it('does not judge products with parked events', async () => {
    const { harness, table } = await shop(10);
    await run(`ALTER TABLE ${table} ADD CONSTRAINT nice CHECK (title <> 'bad')`);
    await harness.deliver([book(1, 'bad')]);
    expect(harness.parked()).toHaveLength(1);
    expect(await compared(harness)).toMatchObject({ ...EQUAL, same: 9, notJudged: 1 });
  });

  it('notes that a trigger undoes what it repairs', async () => {
    const { harness, table } = await shop(10);
    for (const sql of database.trigger(table)) await run(sql);
    await run(`UPDATE ${table} SET seq = 0 WHERE vbid = '${book(1).vbid}'`);
    const { error, differing, repaired } = await compared(harness, { repair: true });
    expect({ differing, repaired }).toEqual({ differing: 1, repaired: 0 });
    expect(error).toMatch('products differ again after each repair');
  });

  it('a unique index of the shop overwrites no other product, and a repair names the product that it refuses', async () => {
    const { harness, table } = await shop(10, '&removals=delete', 0);
    await run(`CREATE UNIQUE INDEX own ON ${table} (${database.title})`);
    await harness.deliver([book(6, 'Title 2'), book(50, 'Title 2')]);
    expect(harness.parked().map(({ vbid }) => vbid)).toEqual([book(6).vbid, book(50).vbid]);
    expect(await compared(harness)).toMatchObject({ ...EQUAL, same: 9, notJudged: 2 });
    await run(`DELETE FROM ${table} WHERE vbid = '${book(3).vbid}'`);
    await run(`INSERT INTO ${table} (vbid, title, body, seq, changed_at) VALUES ('extra', 'Title 3', '{}', 1, now())`);
    await run(`UPDATE ${table} SET seq = 0 WHERE vbid = '${book(5).vbid}'`);
    expect(await compared(harness, { repair: true })).toMatchObject({
      missing: 1,
      differing: 1,
      repaired: 1,
      held: 1,
      error: expect.stringMatching(`^the store refuses 1 of the products, such as ${book(3).vbid}: .*own`),
    });
    expect(await compared(harness)).toMatchObject({ differing: 0, missing: 1, extra: 1 });
    // Accepted once the extra row is gone.
    const repaired = await compared(harness, { repair: true, removesAll: true });
    expect(repaired).toMatchObject({ missing: 1, extra: 1, repaired: 2, error: null });
  });

  it('runs when its time has come, and is asked again while the clock stands still', async () => {
    const { harness, target } = await feeding(database.target(server.port, '&verify=7d'));
    const { clock, advance } = movable();
    harness.change(shelf(5));
    harness.start(configAt(target.url), { clock });
    await until('it was compared', () => harness.sink().checked !== null);
    const first = harness.sink().checked;
    expect(first).toMatchObject({ ...EQUAL, same: 5, deep: true });
    await harness.deliver(shelf(5, 'new'));
    expect(harness.sink().checked?.id).toBe(first?.id);
    advance(7 * 86_400_000);
    await until('it was compared again', () => harness.sink().checked?.id !== first?.id);
  });

  const isLong = process.env.CI !== undefined;
  it('finds no difference while the catalog changes', { tags: ['slow'] }, async () => {
    const { harness } = await shop(500);
    const stop = new AbortController();
    const changing = (async () => {
      for (let round = 1; !stop.signal.aborted; round++) {
        const first = (round * 37) % 490;
        const changed = Array.from({ length: 10 }, (_, at) => book(first + at, `round ${round}`));
        harness.change(changed, round);
        harness.change([{ vbid: book(round % 500).vbid, body: null }], round);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    })();
    const turns = isLong ? 100 : 10;
    let delivered = 0;
    for (let turn = 0; turn < turns; turn++) {
      const before = harness.sink().cursor;
      const { examples, error } = await compared(harness, { deep: turn % 2 === 0 });
      expect({ examples, error }).toEqual({ examples: [], error: null });
      if (harness.sink().cursor > before) delivered++;
    }
    stop.abort();
    await changing;
    expect(delivered).toBeGreaterThan(turns / 2);
  });

  it('finds 137 damaged products with 3% of the data', { tags: ['slow'] }, async () => {
    const count = isLong ? 20_000 : 8_000;
    const { harness, target, table } = await shop(count);
    const loaded = target.bytes();
    const keys = (from: number, to: number): string =>
      shelf(to)
        .slice(from)
        .map(({ vbid }) => `'${vbid}'`)
        .join();
    await run(`UPDATE ${table} SET title = 'x' WHERE vbid IN (${keys(0, 40)})`);
    await run(`UPDATE ${table}_prices SET value = 0 WHERE vbid IN (${keys(40, 70)})`);
    await run(`UPDATE ${table} SET seq = seq + 1 WHERE vbid IN (${keys(70, 90)})`);
    await run(`UPDATE ${table} SET removed_at = now() WHERE vbid IN (${keys(90, 110)})`);
    await run(`DELETE FROM ${table} WHERE vbid IN (${keys(110, 127)})`);
    await run(
      `INSERT INTO ${table} (vbid, body, seq, changed_at) SELECT ${database.concat}, '{}', 1, now() FROM ${database.numbers(10)} AS n`,
    );
    const result = await compared(harness, { repair: true });
    expect(result).toMatchObject({ differing: 90, missing: 37, extra: 10, repaired: 137, error: null });
    const share = (target.bytes() - loaded) / loaded;
    expect(share).toBeLessThan(isLong ? 0.03 : 0.06);
    expect(await compared(harness)).toMatchObject({ ...EQUAL, same: count });
  });
});
