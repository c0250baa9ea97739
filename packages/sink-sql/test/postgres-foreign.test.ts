import { PART_NAMES } from '@catchword/catalog/fields';
import { LAYOUT } from '@catchword/sink-sql/postgres/postgres-layout';
import { postgresAvailable, usePostgres } from '@catchword/testing/postgres';
import pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { SinkConfig } from '../../../src/relay/sink-config.ts';
import { books, configAt, failsAgain, fed, fedBefore, feeding, NEVER } from '../../../test/relay/feeding.ts';
import { postgresTarget } from '../../../test/relay/targets.ts';

/** The columns that catchword makes. */
const COLUMNS = Object.entries<string>({ ...LAYOUT.products, body: 'jsonb NOT NULL', seq: 'bigint NOT NULL' })
  .map(([name, type]) => `${name} ${type}`)
  .concat('vbid text PRIMARY KEY, changed_at timestamptz NOT NULL, removed_at timestamptz')
  .join(', ');
/** The tables of its parts, for a statement. */
const PARTS_OF = (table: string): string => PART_NAMES.map((part) => `${table}_${part}`).join(', ');
const PRICES = 'vbid text NOT NULL, sku text, type text, duration text, currency text, value numeric';

describe.skipIf(!postgresAvailable)('a table of another application in PostgreSQL', { tags: ['stores'] }, () => {
  const postgres = usePostgres();

  const rowsOf = async (table: string): Promise<unknown[]> =>
    (await postgres.client.query(`SELECT * FROM ${table} ORDER BY 1`)).rows;

  it.each([
    ['with other columns', 'vbid text PRIMARY KEY, title text, stock integer', 'vbid, title, stock', `'T', 7`],
    [
      'with columns of its own and all of catchword',
      `${COLUMNS}, stock integer`,
      'vbid, body, seq, changed_at',
      `'{}', 1, now()`,
    ],
    ['with the columns that catchword makes', COLUMNS, 'vbid, body, seq, changed_at', `'{}', 1, now()`],
  ])('%s is rejected, and stays as it is after a replay', async (_, columns, filled, values) => {
    const { harness, target, config } = await feeding(postgresTarget(postgres.port, '&removals=delete'));
    const { table } = target;
    await postgres.client.query(`CREATE TABLE ${table} (${columns});
      INSERT INTO ${table} (${filled}) SELECT 'S' || n, ${values} FROM generate_series(1, 5000) AS n`);
    const before = await rowsOf(table);
    const sink = await config.make();
    await expect(sink.check(NEVER)).rejects.toMatchObject({ failure: 'misconfigured' });
    harness.change(books(3, 1));
    await harness.failed(config);
    expect(harness.sink().error).toMatch(
      /^PostgreSQL: catchword did not create table \S+: .* Use another one: table=NAME$/,
    );
    expect(harness.sink().error).not.toContain('another mirror');
    await failsAgain(harness);
    expect(await rowsOf(table)).toEqual(before);
    await harness.stop();
    const other = target.url.replace(`table=${table}`, `table=${table}_catalog`);
    await harness.resume(configAt(other));
    expect(await rowsOf(table)).toEqual(before);
    expect(await rowsOf(`${table}_catalog`)).toHaveLength(3);
  });

  it('of another version, which lacks a column, is rejected by that name', async () => {
    const { target, config } = await fedBefore(postgresTarget(postgres.port), 3);
    await postgres.client.query(`ALTER TABLE ${target.table} DROP COLUMN subtitle`);
    const sink = await config.make();
    await expect(sink.check(NEVER)).rejects.toThrow(
      `PostgreSQL: another version of catchword created table public.${target.table}: it lacks the columns subtitle. Use`,
    );
  });

  it('that has the name of the prices is rejected, and stays as it is', async () => {
    const { harness, target, config } = await feeding(postgresTarget(postgres.port));
    const prices = `${target.table}_prices`;
    await postgres.client.query(`CREATE TABLE ${prices} (${PRICES}); INSERT INTO ${prices} VALUES ('P1', 'of a shop')`);
    const before = await rowsOf(prices);
    harness.change(books(3, 1));
    await harness.failed(config);
    expect(harness.sink().error).toContain(`catchword did not create table public.${prices}`);
    await failsAgain(harness);
    expect(await rowsOf(prices)).toEqual(before);
  });

  it('a table without a comment is fed if it has a cursor', async () => {
    const { harness, target, config } = await fedBefore(postgresTarget(postgres.port), 5);
    const { table } = target;
    const uncomment = [table, `${table}_prices`, 'catchword_cursor'].map((name) => `COMMENT ON TABLE ${name} IS NULL`);
    await postgres.client.query(uncomment.join('; '));
    await harness.resume(config, books(6, 2));
    expect((await target.read()).products).toEqual(harness.living());
    // From now on its comment says who made it.
    const { rows } = await postgres.client.query(`SELECT obj_description('${table}'::regclass, 'pg_class') AS comment`);
    expect(rows).toEqual([{ comment: expect.stringMatching(/^catchword made this table/) }]);
  });

  it('a table whose comment its owner has changed is fed as long as it has a cursor', async () => {
    const { harness, target, config } = await fedBefore(postgresTarget(postgres.port), 5);
    await postgres.client.query(`COMMENT ON TABLE ${target.table} IS 'our books'`);
    await harness.resume(config, books(6, 2));
    expect((await target.read()).products).toEqual(harness.living());
    const { rows } = await postgres.client.query(`SELECT obj_description('${target.table}'::regclass) AS comment`);
    expect(rows).toEqual([{ comment: 'our books' }]);
  });
});

describe.skipIf(!postgresAvailable)('a PostgreSQL that does not allow or know everything', { tags: ['stores'] }, () => {
  const postgres = usePostgres();

  /** Lets a user only read and write rows. */
  async function writerOf(target: { readonly table: string; readonly url: string }): Promise<SinkConfig> {
    const { table } = target;
    const user = `writer_${table}`;
    await postgres.client.query(`CREATE USER ${user}; REVOKE CREATE ON SCHEMA public FROM PUBLIC;
      GRANT SELECT, INSERT, UPDATE, DELETE ON ${table}, ${PARTS_OF(table)}, catchword_cursor TO ${user}`);
    onTestFinished(async () => {
      await postgres.client.query(`DROP OWNED BY ${user}; DROP USER ${user}; GRANT CREATE ON SCHEMA public TO PUBLIC`);
    });
    const url = target.url.replace('postgres@', `${user}@`);
    return configAt(url);
  }

  it('feeds with rights to rows alone, though indexes and comments are missing', async () => {
    const { harness, target } = await fed(postgresTarget(postgres.port), 5);
    const { table } = target;
    await harness.stop();
    await postgres.client.query(`DROP INDEX ${table}_print_isbn_idx, ${table}_e_isbn_idx, ${table}_prices_vbid_idx;
      COMMENT ON TABLE ${table} IS NULL; COMMENT ON TABLE ${table}_prices IS NULL`);
    const config = await writerOf(target);
    await harness.resume(config, books(8, 2));
    expect((await target.read()).products).toEqual(harness.living());
    const sink = await config.make();
    expect(await sink.check(NEVER)).toContain('can be written');
    await harness.stop();
  });

  it('feeds empty tables that an administrator made, with rights to rows alone', async () => {
    const { harness, target } = await fed(postgresTarget(postgres.port), 5);
    const { table } = target;
    await harness.stop();
    await postgres.client.query(`TRUNCATE ${table}, ${PARTS_OF(table)}; COMMENT ON TABLE ${table} IS NULL;
      COMMENT ON TABLE ${table}_prices IS NULL; DELETE FROM catchword_cursor WHERE table_name = 'public.${table}'`);
    const config = await writerOf(target);
    await harness.resume(config, books(8, 2));
    expect((await target.read()).products).toEqual(harness.living());
    await harness.stop();
  });

  it.each(['SQL_ASCII', 'LATIN1'])('stores escaped characters in a database in %s', async (encoding) => {
    const target = await postgresTarget(postgres.port);
    const database = `${encoding.toLowerCase()}_${target.table}`;
    await postgres.client.query(
      `CREATE DATABASE ${database} ENCODING ${encoding} TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'`,
    );
    const { harness } = await feeding(Promise.resolve(target));
    const url = target.url.replace('/postgres?', `/${database}?`);
    const config = configAt(url);
    const wide = encoding === 'SQL_ASCII' ? '\\u4e2d\\ud83d\\ude00' : '\\u00fc';
    const versions = [
      { vbid: 'A', body: `{"vbid":"A","title":"caf\\u00e9 \\\\u00e9 \\u0009 ${wide}"}` },
      { vbid: 'B', body: '{"vbid":"B","title":"half \\ud83d"}' },
      { vbid: 'C', body: '{"vbid":"C"}' },
    ];
    await harness.resume(config, versions);
    const client = new pg.Client({ connectionString: `postgres://postgres@127.0.0.1:${postgres.port}/${database}` });
    await client.connect();
    onTestFinished(() => client.end());
    const { rows } = await client.query(`SELECT vbid, title, body FROM ${target.table} ORDER BY vbid`);
    const [first] = versions.map(({ body }) => JSON.parse(body) as { title: string });
    expect(rows).toEqual([
      { vbid: 'A', title: first?.title, body: first },
      { vbid: 'C', title: null, body: { vbid: 'C' } },
    ]);
    expect(harness.parked()).toMatchObject([{ vbid: 'B', state: 'refused' }]);
    await harness.stop();
  });
});
