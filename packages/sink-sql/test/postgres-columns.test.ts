import { postgresAvailable, usePostgres } from '@catchword/testing/postgres';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { describe, expect, it } from 'vitest';
import { until } from '../../../src/contract/harness.ts';
import { books, configAt, fed, feeding } from '../../../test/relay/feeding.ts';
import { postgresTarget } from '../../../test/relay/targets.ts';
import { runHere } from '../../../test/support/in-process.ts';

function detailed(value: string | number, more: Record<string, unknown> = {}) {
  const prices = [
    { type: 'digital_list_price', currency: 'USD', value },
    { type: 'digital_list_price', currency: 'EUR', value: 'on request' },
  ];
  const fields = {
    vbid: 'V1',
    title: 'Tides',
    subtitle: 'A "Tale"',
    language: 'en',
    edition: 2,
    distributable: false,
    contributors: [{ name: 'Ann Lee', type: 'author' }, { name: 'Bo' }],
    on_sale_date: '2026-01-31',
    off_sale_date: 'null',
    identifiers: { print_isbn_canonical: '9780000000002', vbid13_alias: ['A1', 'A2'] },
    resource_links: { cover_image: 'https://covers.example/1.jpg' },
    sales_rights: ['WORLD'],
    exclude_sales_rights: [],
    variants: [{ sku: 'V1R180', type: 'rental', duration: '180', distributable: false, prices }],
    ...more,
  };
  return { vbid: 'V1', body: JSON.stringify(fields) };
}

describe.skipIf(!postgresAvailable)('the columns and prices of a PostgreSQL sink', { tags: ['stores'] }, () => {
  const postgres = usePostgres();

  const SHOP = `distributable, subtitle, contributors, language, edition, cover_url, on_sale_date, off_sale_date,
    sales_rights, exclude_sales_rights`;
  const SHOWN = {
    distributable: false,
    subtitle: 'A "Tale"',
    contributors: 'Ann Lee; Bo',
    language: 'en',
    edition: '2',
    cover_url: 'https://covers.example/1.jpg',
    on_sale_date: '2026-01-31',
    off_sale_date: null,
    sales_rights: ['WORLD'],
    exclude_sales_rights: [],
  };

  function prices(table: string) {
    return postgres.client
      .query(`SELECT vbid, sku, type, duration, currency, value, variant_type, variant_distributable
        FROM ${table}_prices ORDER BY vbid, currency DESC`)
      .then(({ rows }) => rows as unknown[]);
  }

  /** Contributors and identifiers, in the order of the source. */
  async function others(table: string) {
    const read = (sql: string) => postgres.client.query({ text: sql, rowMode: 'array' }).then(({ rows }) => rows);
    return [
      await read(`SELECT vbid, position, name, type FROM ${table}_contributors ORDER BY vbid, position`),
      await read(`SELECT vbid, form, value FROM ${table}_identifiers ORDER BY vbid, form, value`),
    ];
  }

  const VARIANT = { variant_type: 'rental', variant_distributable: false };
  const PRICE = { vbid: 'V1', sku: 'V1R180', type: 'digital_list_price', duration: '180', ...VARIANT };
  const price = (value: string | null, currency = 'USD') => ({ ...PRICE, currency, value });

  it('columns and prices show what a shop needs', async () => {
    const { harness, target, config } = await feeding(postgresTarget(postgres.port));
    await harness.resume(config, [detailed('12.50'), ...books(2, 1)]);
    const { rows } = await postgres.client.query(`SELECT ${SHOP} FROM ${target.table} WHERE vbid = 'V1'`);
    expect(rows).toEqual([SHOWN]);
    expect(await prices(target.table)).toEqual([price('12.5'), price(null, 'EUR')]);
    const { rows: plain } = await postgres.client.query(
      `SELECT distributable, edition FROM ${target.table} WHERE vbid = 'P0'`,
    );
    expect(plain).toEqual([{ distributable: true, edition: null }]);
  });

  it('contributors and identifiers have rows, which change and disappear with the product', async () => {
    const { harness, target, config } = await feeding(postgresTarget(postgres.port));
    await harness.resume(config, [detailed(9), ...books(2, 1)]);
    const IDENTIFIERS = [
      ['V1', 'print_isbn_canonical', '9780000000002'],
      ['V1', 'vbid13_alias', 'A1'],
      ['V1', 'vbid13_alias', 'A2'],
    ];
    const NAMES = [
      ['V1', 1, 'Ann Lee', 'author'],
      ['V1', 2, 'Bo', null],
    ];
    expect(await others(target.table)).toEqual([NAMES, IDENTIFIERS]);
    // A value of any length has an index.
    const long = Array.from({ length: 9_000 }, (_, at) => (at * 7_919).toString(36)).join('');
    await harness.deliver([detailed(9, { contributors: ['Cy'], identifiers: { other: long } })]);
    expect(await others(target.table)).toEqual([[['V1', 1, 'Cy', null]], [['V1', 'other', long]]]);
    await harness.deliver([{ vbid: 'V1', body: null }]);
    expect(await others(target.table)).toEqual([[], []]);
    await harness.deliver([detailed(8)]);
    harness.replay(0, true);
    await harness.caughtUp();
    expect(await others(target.table)).toEqual([NAMES, IDENTIFIERS]);
  });

  it('prices, contributors and identifiers have a key of one column', async () => {
    const { target } = await fed(postgresTarget(postgres.port), 1);
    const { rows } = await postgres.client.query<{ name: string; column: string }>(
      `SELECT relname AS name, attname AS column FROM pg_index JOIN pg_class ON pg_class.oid = indrelid
       JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY (indkey)
       WHERE indisprimary AND relname LIKE '${target.table}\\_%' ORDER BY 1`,
    );
    const keys = ['contributors', 'identifiers', 'prices'].map((part) => ({
      name: `${target.table}_${part}`,
      column: 'id',
    }));
    expect(rows).toEqual(keys);
  });

  it('prices change and disappear with the product', async () => {
    const { harness, target, config } = await feeding(postgresTarget(postgres.port));
    await harness.resume(config, [detailed('12.50')]);
    await harness.deliver([detailed(9, { distributable: true })]);
    expect(await prices(target.table)).toEqual([price('9'), price(null, 'EUR')]);
    await harness.deliver([{ vbid: 'V1', body: null }]);
    expect(await prices(target.table)).toEqual([]);
    await harness.deliver([detailed(8)]);
    expect(await prices(target.table)).toEqual([price('8'), price(null, 'EUR')]);
    // A replay does not overwrite newer prices with older ones.
    harness.replay(0, true);
    await harness.caughtUp();
    expect(await prices(target.table)).toEqual([price('8'), price(null, 'EUR')]);
  });

  it('prices are replaced when only the table with the products was emptied', async () => {
    const { harness, target, config } = await feeding(postgresTarget(postgres.port));
    await harness.resume(config, [detailed('12.50')]);
    await harness.stop();
    await postgres.client.query(`TRUNCATE ${target.table}`);
    await harness.resume(config, [detailed(9)]);
    expect(await prices(target.table)).toEqual([price('9'), price(null, 'EUR')]);
  });

  it('tables have indexes for ISBNs, identifiers and the parts of a product', async () => {
    const { target } = await fed(postgresTarget(postgres.port), 1);
    const { rows } = await postgres.client.query<{ definition: string }>(
      `SELECT indexdef AS definition FROM pg_indexes WHERE tablename LIKE '${target.table}%'`,
    );
    const indexed = rows.map(({ definition }) => /\((.*)\)$/.exec(definition)?.[1]);
    const expected = 'e_isbn id id id print_isbn value vbid vbid vbid vbid'.split(' ');
    expect(indexed.toSorted((a = '', b = '') => a.localeCompare(b))).toEqual(expected);
  });

  it('the SQL in the error creates the tables if the user may not', async () => {
    const { harness, target } = await feeding(postgresTarget(postgres.port));
    const { table } = target;
    const user = `shop_${table}`;
    harness.change(books(3, 1));
    const all = 'ALL ON ALL TABLES IN SCHEMA public';
    await postgres.client.query(
      `CREATE USER ${user}; REVOKE CREATE ON SCHEMA public FROM PUBLIC; GRANT ${all} TO ${user}`,
    );
    const url = target.url.replace('postgres@', `${user}@`);
    await harness.failed(configAt(url));
    expect(harness.sink().error).toMatch(/may not create tables\. See the SQL to run: npx catchword doctor$/);
    const settings = { CATCHWORD_SINK_SHOP: url, CATCHWORD_DB: harness.store.path };
    const { stdout } = await runHere(['doctor', '--json'], settings, temporaryDirectory());
    const checked = JSON.parse(stdout) as { check: string; text: string }[];
    const { text = '' } = checked.find(({ check }) => check === 'sink') ?? {};
    expect(text).toMatch(/Run as their owner:\nCREATE TABLE [^\n]*;\n/);
    await postgres.client.query(text.slice(text.indexOf('owner:') + 'owner:'.length));
    await postgres.client.query(`GRANT ${all} TO ${user}`);
    await until('the error is cleared', () => harness.sink().error === null);
    await until('all products are there', async () => (await target.read()).products.size === 3);
    await harness.caughtUp();
    await harness.stop();
    await postgres.client.query(
      `REVOKE ${all} FROM ${user}; DROP USER ${user}; GRANT CREATE ON SCHEMA public TO PUBLIC`,
    );
  });

  it('stores no prices of products that a trigger keeps out of the table', async () => {
    const { harness, target, config } = await feeding(postgresTarget(postgres.port));
    const { table } = target;
    harness.start(config);
    const exists = () => postgres.client.query(`SELECT to_regclass('${table}_prices') AS name`);
    await until('the tables are there', async () => (await exists()).rows[0].name !== null);
    await postgres.client.query(`CREATE FUNCTION ${table}_filter() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.vbid = 'V1' THEN RETURN NULL; END IF; RETURN NEW; END $$;
      CREATE TRIGGER filter BEFORE INSERT ON ${table} FOR EACH ROW EXECUTE FUNCTION ${table}_filter()`);
    harness.change([detailed('1'), ...books(1, 1)]);
    await harness.caughtUp();
    expect((await postgres.client.query(`SELECT vbid FROM ${table}`)).rows).toEqual([{ vbid: 'P0' }]);
    expect(await prices(table)).toEqual([]);
  });
});
