import { columnsOf, type Fields, partsOf } from '@catchword/catalog/field-values';
import { COLUMNS, PART_NAMES, PARTS } from '@catchword/catalog/fields';
import { productOf } from '@catchword/catalog/product';
import { pageOfText } from '@catchword/testing/page';
import { query } from '@catchword/testing/sqlite';
import fc from 'fast-check';
import { expect, it, onTestFinished } from 'vitest';
import { rawNumber } from '../../packages/catalog/test/raw-json.ts';
import { openHarness } from '../../src/contract/harness.ts';

/* The views read the text of a product with SQLite, and everything else reads it with JavaScript: both get the same. */

const NAMES = ['title', 'distributable', 'subtitle', 'kind', 'format', 'publisher', 'identifiers', 'contributors'];
const MORE = ['language', 'edition', 'resource_links', 'on_sale_date', 'variants', 'sales_rights', 'metadata'];
const INNER = ['name', 'value', 'type', 'sku', 'prices', 'currency', 'duration', 'distributable', 'cover_image'];
const IDS = ['print_isbn_canonical', 'eisbn_canonical', 'fpid'];

const quoted = (names: readonly string[]) => fc.constantFrom(...names).map((name) => JSON.stringify(name));
/** Names as they are, and with an escape that changes nothing. */
const key = (names: readonly string[]) =>
  fc.oneof(
    { weight: 9, arbitrary: quoted(names) },
    quoted(names).map((name) => name.replace('t', '\\u0074')),
  );
const scalar = fc.oneof(
  rawNumber,
  fc.constantFrom(
    'true',
    'false',
    'null',
    '""',
    '"null"',
    '"false"',
    '"12.50"',
    '" 3"',
    '"é\\n"',
    '"\\ud83d\\ude00"',
    '"x"',
    '"-1"',
  ),
  fc.constantFrom('10.50', '0', '-0', '1e3', '1E-5', '123456789012345', '0.1', '9007199254740993'),
);

/** Objects may have a member twice. */
function value(depth: number): fc.Arbitrary<string> {
  if (depth === 0) return scalar;
  const inner = value(depth - 1);
  const members = fc.array(fc.tuple(key([...INNER, ...IDS]), inner), { maxLength: 5 });
  const object = members.map((all) => `{${all.map(([name, one]) => `${name}:${one}`).join(',')}}`);
  const array = fc.array(inner, { maxLength: 3 }).map((all) => `[${all.join(', ')}]`);
  return fc.oneof({ weight: 2, arbitrary: scalar }, array, { weight: 2, arbitrary: object });
}

const item = fc
  .array(fc.tuple(key([...NAMES, ...MORE]), value(4)), { maxLength: 8 })
  .map((all) => `{"vbid":"A"${all.map(([name, one]) => `,${name}:${one}`).join('')}}`);

const asSql = (one: unknown): unknown => (typeof one === 'boolean' ? Number(one) : one);

it('the views of a product have the values that JavaScript reads, whatever the product is', { tags: ['slow'] }, () => {
  const bench = openHarness();
  onTestFinished(() => bench.close());
  const { path } = bench.store;
  fc.assert(
    fc.property(item, (sent) => {
      const text = `{"num_items":1,"page":1,"per_page":10,"total_pages":1,"items":[${sent}]}`;
      const [product] = pageOfText(text, { page: 1, perPage: 10 }).products;
      const body = product?.body ?? '';
      bench.change([{ vbid: 'A', body }]);
      // What is stored is what was sent, as JavaScript reads it.
      const fields = JSON.parse(sent) as Fields;
      expect(JSON.parse(body)).toEqual(fields);
      expect(productOf('A', fields, body)).toEqual(product);
      const names = COLUMNS.map(({ column }) => column);
      const [row] = query<Record<string, unknown>>(path, `SELECT ${names.join()} FROM catalog`);
      expect(names.map((name) => row?.[name])).toEqual(columnsOf(fields).map(asSql));
      for (const part of PART_NAMES) {
        const columns = PARTS[part].map(({ column }) => column);
        const rows = query<Record<string, unknown>>(path, `SELECT ${columns.join()} FROM ${part}`);
        expect([part, rows.map((one) => columns.map((name) => one[name]))]).toEqual([
          part,
          partsOf(fields)[part].map((one) => one.map(asSql)),
        ]);
      }
    }),
  );
});
