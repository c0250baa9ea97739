import { difference, type Pointer } from '@catchword/catalog/content';
import { createEmptiedFields } from '@catchword/catalog/emptied-fields';
import { type Fields, fieldText, partsOf } from '@catchword/catalog/field-values';
import { COLUMNS, type Field, type Form } from '@catchword/catalog/fields';
import { expect, it } from 'vitest';

function emptied(older: Fields, newer: Fields, ignored: readonly Pointer[] = []): string[] {
  const [was, is] = [older, newer].map((fields) => JSON.stringify({ vbid: 'A', ...fields })) as [string, string];
  return createEmptiedFields(ignored)(difference(was, is), is);
}

/** Values of each form of a column. */
const VALUES: Partial<Record<Form, unknown>> = { name: { name: 'A' }, names: [{ name: 'A' }], texts: ['US'] };
const FORMS = [undefined, null, '', 'null', {}, [], [''], 'B', 7, ['B'], { name: 'B' }, [{ name: 'B' }], 1e30];

function itemWith({ key, inner }: Field, value: unknown): Fields {
  return { [key]: inner === undefined ? value : { other: 1, [inner]: value } };
}

it.each(COLUMNS.map((field) => [field.column, field] as const))('an update empties %s as its text says', (_, field) => {
  const older = itemWith(field, VALUES[field.form] ?? 'A');
  for (const value of FORMS) {
    const newer = itemWith(field, value);
    const isEmpty = field.form !== 'sellable' && [null, '[]'].includes(fieldText(newer, field));
    expect([value, emptied(older, newer)]).toEqual([value, isEmpty ? [field.column] : []]);
    // What was empty before, or what only one version has, was not lost.
    expect(emptied(isEmpty ? newer : {}, older)).toEqual([]);
  }
});

const priced = (...prices: unknown[]): Fields => ({ variants: [{ sku: 'a', prices }, { sku: 'b' }] });

it.each([
  ['no variants', {}, ['prices']],
  ['variants without prices', priced(), ['prices']],
  ['a price without a number', priced({ currency: 'EUR', value: null }), ['prices']],
  ['another price', priced({ currency: 'EUR', value: 2 }), []],
  ['a price as a text', priced({ currency: 'EUR', value: '2.50' }), []],
])('an update to %s empties the prices only without a number', (_, newer, expected) => {
  const older = priced({ currency: 'USD', value: 1 }, { currency: 'EUR', value: 1 });
  expect(partsOf(older).prices).toHaveLength(2);
  expect(emptied(older, newer)).toEqual(expected);
});

it('an update that changes no known member is not parsed', () => {
  const item = { title: 'A', more: { title: 'A' } };
  expect(createEmptiedFields([])({ before: '{"more":1,"titles":2}' }, 'no JSON')).toEqual([]);
  expect(emptied(item, { title: 'A', more: {} })).toEqual([]);
});

it('an update empties no field whose changes are ignored', () => {
  const older = { title: 'A', publisher: 'B', identifiers: { eisbn_canonical: '1' }, ...priced({ value: 1 }) };
  const emptiedBut = (...pointers: string[]) => {
    return emptied(
      older,
      {},
      pointers.map((pointer) => pointer.split('/')),
    ).sort();
  };
  expect(emptiedBut()).toEqual(['e_isbn', 'prices', 'publisher', 'title']);
  expect(emptiedBut('publisher', 'variants/*/updated', 'identifiers/isbn_13')).toEqual(emptiedBut('publisher'));
  expect(emptiedBut('publisher', 'identifiers/eisbn_canonical')).toEqual(['prices', 'title']);
  expect(emptiedBut('variants/*/prices', 'identifiers')).toEqual(['publisher', 'title']);
});
