import { COLUMNS, type Field, STORED } from '@catchword/catalog/fields';
import { postgresAvailable, usePostgres } from '@catchword/testing/postgres';
import Database from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openMirror } from '../../src/mirror/mirror.ts';
import { productText } from '../../src/report/product-text.ts';
import { serveHarness } from '../http/place.ts';
import { feeding } from './feeding.ts';
import { postgresTarget } from './targets.ts';

/** What a field holds: JSON, the text in each typed column, and on the page. */
type Odd = readonly [name: string, json: string | null, column: string | null, page?: string | null];

const ODD: readonly Odd[] = [
  ['absent', null, null],
  ['null', 'null', null],
  ['true', 'true', null],
  ['false', 'false', null],
  ['an object', '{"x":1}', null],
  ['a list', '["a"]', null],
  ['an empty string', '""', null],
  ['the word null', '"null"', null],
  ['text', '"Tides 🙂"', 'Tides 🙂'],
  ['a long text', `"${'long '.repeat(20_000)}"`, 'long '.repeat(20_000)],
  ['text like JSON', '"{\\"a\\":1.50}"', '{"a":1.50}'],
  ['a number', '4711', '4711'],
  ['zero', '0', '0'],
  ['minus zero', '-0.0', '0', '-0.0'],
  ['a decimal', '1.50', '1.5', '1.50'],
  ['an exponent', '1e2', '100', '1e2'],
  ['fifteen digits', '123456789012345', '123456789012345'],
  ['sixteen digits', '1234567890123456', null, '1234567890123456'],
  ['twenty digits', '12345678901234567890', null, '12345678901234567890'],
  ['a long decimal', '0.30000000000000004', null, '0.30000000000000004'],
  ['a small number', '1e-7', null, '1e-7'],
  ['a number beyond any', '1e400', null, '1e400'],
];
/** PostgreSQL cannot store it. In SQLite it is three bytes that are not UTF-8. */
const HALF: Odd = ['half a surrogate pair', '"a\\ud800b"', 'a\ufffd\ufffd\ufffdb', 'a\ud800b'];

const keyOf = (at: number): string => `ODD-${at}`;

/** An item whose fields all have one value; lists have it as their only element. */
function itemOf(vbid: string, json: string | null): string {
  const members = new Map<string, string[]>();
  for (const { key, inner, form } of COLUMNS) {
    if (form === 'sellable' || json === null) continue;
    const value = form === 'names' || form === 'texts' ? `[${json}]` : json;
    members.set(key, [...(members.get(key) ?? []), inner === undefined ? value : `${JSON.stringify(inner)}:${value}`]);
  }
  const inner = (key: string) => COLUMNS.some((field) => field.key === key && field.inner !== undefined);
  const texts = [...members].map(([key, parts]) => `"${key}":${inner(key) ? `{${parts.join()}}` : parts[0]}`);
  const price = ['sku', 'duration'].map((name) => `"${name}":${json ?? null}`).join();
  const prices = `"variants":[{${price},"prices":[{"type":${json ?? null},"currency":${json ?? null},"value":1}]}]`;
  return `{"vbid":"${vbid}",${[...texts, prices].join()}}`;
}

/** @param listAs how a list of texts is read */
const withValue = (
  fields: readonly Field[],
  [, json, text]: Odd,
  sellable: unknown,
  listAs: (list: string[]) => unknown,
) =>
  Object.fromEntries(
    fields.map(({ column, form }) => {
      const list = json === null ? null : listAs(text === null ? [] : [text]);
      return [column, form === 'sellable' ? sellable : form === 'texts' ? list : text];
    }),
  );

/** The values of contributors and identifiers: an identifier may be a list. */
const othersOf = ([name, , text]: Odd) => ({ name: text, value: name === 'a list' ? 'a' : text });

const versions = (odd: readonly Odd[]) =>
  odd.map(([, json], at) => ({ vbid: keyOf(at), body: itemOf(keyOf(at), json) }));

it('a field with an odd value is the same in the mirror, its views, its library, its API and on the page', async () => {
  const all = [...ODD, HALF];
  const { change, store, page, web } = await serveHarness();
  change(versions(all));
  const file = new Database(store.path, { readonly: true });
  const library = openMirror(store.path);
  onTestFinished(() => {
    file.close();
    library.close();
  });
  const catalog = file.prepare('SELECT * FROM catalog WHERE vbid = ?');
  const prices = file.prepare('SELECT sku, type, duration, currency, value FROM prices WHERE vbid = ?');
  const names = file.prepare('SELECT name FROM contributors WHERE vbid = ?').pluck();
  const values = file.prepare('SELECT DISTINCT value FROM identifiers WHERE vbid = ?').pluck();
  for (const [at, odd] of all.entries()) {
    const [name, json, column, shown = column] = odd;
    const vbid = keyOf(at);
    const stored = withValue(STORED, odd, true, JSON.stringify);
    const byName = Object.fromEntries(STORED.map((field) => [field.name, column]));
    expect(store.products.get(vbid), name).toMatchObject(byName);
    expect(library.get(vbid), name).toMatchObject(byName);
    const answer = await fetch(`${web.url}/api/products/${vbid}`);
    expect(await answer.json(), name).toMatchObject(stored);
    expect(catalog.get(vbid), name).toMatchObject(withValue(COLUMNS, odd, 1, JSON.stringify));
    const others = { name: names.get(vbid) ?? null, value: values.get(vbid) ?? null };
    expect(others, name).toEqual(othersOf(odd));
    const texts = { sku: column, type: column, duration: column, currency: column };
    expect(prices.get(vbid), name).toEqual({ ...texts, value: 1 });
    const { fields } = productText(itemOf(vbid, json));
    const labels = COLUMNS.flatMap(({ label }) => label ?? []);
    const onPage = labels.map((label) => fields.find((field) => field.label === label)?.texts[0]?.text ?? null);
    expect(onPage, name).toEqual(labels.map(() => shown));
    expect((await page(`/products/${vbid}`)).status, name).toBe(200);
    const words = (column ?? shown ?? '').slice(0, 20).trim();
    const isFound = words !== '' && store.search(words, 100).some((hit) => hit.vbid === vbid);
    expect(isFound, name).toBe(column !== null);
  }
});

it('a price that is not a number is null', async () => {
  const odd = ['"12.50"', '" 7 "', '"1e2"', '"on request"', 'true', '{}', '1e400', '12345678901234567890', '"9e9"'];
  const expected = [12.5, 7, null, null, null, null, null, null, null];
  const { change, store } = await serveHarness();
  const list = odd.map((value) => `{"value":${value}}`).join();
  change([{ vbid: 'V', body: `{"vbid":"V","variants":[{"prices":[${list}]}]}` }]);
  const file = new Database(store.path, { readonly: true });
  onTestFinished(() => {
    file.close();
  });
  expect(file.prepare('SELECT value FROM prices').pluck().all()).toEqual(expected);
});

describe.skipIf(!postgresAvailable)('a PostgreSQL table', { tags: ['stores'] }, () => {
  const postgres = usePostgres();

  it('a PostgreSQL table has the same, and not an item that its jsonb cannot hold', async () => {
    const { harness, target, config } = await feeding(postgresTarget(postgres.port));
    await harness.resume(config, versions([...ODD, HALF]));
    const { rows } = await postgres.client.query<{ readonly vbid: string }>(`SELECT * FROM ${target.table}`);
    const found = new Map(rows.map((row) => [row.vbid, row]));
    for (const [at, odd] of ODD.entries())
      expect(found.get(keyOf(at)), odd[0]).toMatchObject(withValue(COLUMNS, odd, true, (list) => list));
    const others = await postgres.client.query(
      `SELECT vbid, (SELECT name FROM ${target.table}_contributors AS c WHERE c.vbid = t.vbid),
         (SELECT min(value) AS value FROM ${target.table}_identifiers AS i WHERE i.vbid = t.vbid) FROM ${target.table} AS t`,
    );
    const besides = new Map(others.rows.map(({ vbid, ...row }) => [vbid, row]));
    for (const [at, odd] of ODD.entries()) expect(besides.get(keyOf(at)), odd[0]).toEqual(othersOf(odd));
    const prices = await postgres.client.query<{ readonly vbid: string }>(
      `SELECT vbid, sku, type, duration, currency, value FROM ${target.table}_prices`,
    );
    const priced = new Map(prices.rows.map((row) => [row.vbid, row]));
    for (const [at, [name, , column]] of ODD.entries()) {
      const texts = { sku: column, type: column, duration: column, currency: column };
      expect(priced.get(keyOf(at)), name).toEqual({ vbid: keyOf(at), ...texts, value: '1' });
    }
    expect(found.has(keyOf(ODD.length))).toBe(false);
    expect(harness.parked()).toMatchObject([{ vbid: keyOf(ODD.length), state: 'refused' }]);
  });
});
