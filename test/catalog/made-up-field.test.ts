import { fieldsFrom, ROWS, STORED } from '@catchword/catalog/fields';
import type { SinkEvent } from '@catchword/sink-kit/sink';
import Database from 'better-sqlite3';
import { expect, it, onTestFinished, vi } from 'vitest';
import * as z from 'zod';
import { getTableColumns } from '../../src/store/schema/drizzle.ts';
import { products } from '../../src/store/schema/schema.ts';

const FIELDS = '../../packages/catalog/src/fields.ts';
const MADE_UP = [
  {
    path: 'shelf',
    form: 'names',
    kept: 'read',
    column: 'shelf_marks',
    label: 'Shelf marks',
    about: 'Where it stands.',
  },
  { path: 'metadata.weight', form: 'numeric', kept: 'read', column: 'weight', label: 'Weight', about: 'In grams.' },
] as const;

/** The sources, as if the table of fields had the rows above. */
async function withMadeUp<T>(path: string): Promise<T> {
  vi.resetModules();
  vi.doMock(FIELDS, async (original) => ({ ...(await original<object>()), ...fieldsFrom([...ROWS, ...MADE_UP]) }));
  onTestFinished(() => {
    vi.doUnmock(FIELDS);
    vi.resetModules();
  });
  return (await import(path)) as T;
}

const ITEM = '{"vbid":"V","shelf":["A 1",{"name":"B 2"}],"metadata":{"weight":1.50}}';

it('a field that is added to the table of fields is everywhere', async () => {
  const { openHarness } = await withMadeUp<typeof import('../../src/contract/harness.ts')>(
    '../../src/contract/harness.ts',
  );
  const harness = openHarness();
  onTestFinished(() => harness.close());
  harness.change([{ vbid: 'V', body: ITEM }]);
  const file = new Database(harness.store.path, { readonly: true });
  onTestFinished(() => {
    file.close();
  });
  const row = file.prepare('SELECT shelf_marks, weight FROM catalog').get();
  expect(row, 'the view').toEqual({ shelf_marks: 'A 1; B 2', weight: '1.5' });

  const { LAYOUT } = await import('@catchword/sink-sql/postgres/postgres-layout');
  expect(LAYOUT.products, 'PostgreSQL').toMatchObject({ shelf_marks: 'text', weight: 'text' });
  const { parametersOf } = await import('@catchword/sink-sql/postgres/postgres-parameters');
  const parameters = parametersOf([{ vbid: 'V', body: ITEM, seq: 1, at: 1 } as SinkEvent]);
  const at = Object.keys(LAYOUT.products).indexOf('shelf_marks') + 1;
  expect(parameters.slice(at, at + 2).join(), 'PostgreSQL').toMatch(/A 1; B 2,.*1\.5$/s);

  const { productText } = await import('../../src/report/product-text.ts');
  const shown = productText(ITEM).fields.map(({ label, texts }) => [label, ...texts.map(({ text }) => text)]);
  expect(shown, 'the page').toEqual([
    ['Shelf marks', 'A 1', 'B 2'],
    ['Weight', '1.50'],
  ]);

  const { eventSchema } = await import('../../src/events/event-schema.ts');
  expect(JSON.stringify(eventSchema()), 'events').toContain('"shelf":{"description":"Where it stands."}');
  const { MIRRORED_PRODUCT } = await import('../../src/http/answers.ts');
  const openapi = z.toJSONSchema(MIRRORED_PRODUCT, { unrepresentable: 'any' });
  expect(JSON.stringify(openapi), 'OpenAPI').toContain('"shelf":{"description":"Where it stands."}');

  const { withFieldTables } = await import('../docs/field-tables.ts');
  for (const table of ['catalog', 'postgres']) {
    const page = withFieldTables(`<!-- \`npm run docs\` writes this table: ${table} -->\n\n`);
    expect(page, 'the documents').toContain('| `weight` | text | In grams. |');
  }
});

it('a member of a member has a row for its member, which events are made from', () => {
  const paths = ROWS.map(({ path }): string => path);
  const members = paths.flatMap((path) => (path.includes('.') ? path.split('.').slice(0, 1) : []));
  expect(paths).toEqual(expect.arrayContaining(members));
});

it('src/store/schema/schema.ts has the stored fields, and no other text of an item', () => {
  const kept = ['id', 'vbid', 'firstSeenAt', 'changedAt', 'changedSeq', 'removedAt', 'body', 'withdrawn'];
  const columns = Object.entries(getTableColumns(products)).filter(([name]) => !kept.includes(name));
  expect(columns.map(([name, { name: column }]) => ({ name, column }))).toEqual(
    STORED.map(({ name, column }) => ({ name, column })),
  );
});
