import type { Fields } from '@catchword/catalog/field-values';
import { productOf } from '@catchword/catalog/product';
import { expect, it } from 'vitest';
import { type Judgement, judgeItem } from '../../src/sync/judge-item.ts';

function product(more: Fields = {}) {
  const fields = { vbid: 'V', title: 'old', price: 1, ...more };
  return productOf('V', fields, JSON.stringify(fields));
}

const withdrawn = { distributable: false };
const living = { id: 1, body: product().body, changedSeq: 1, removed: false };
const tombstone = { ...living, removed: true };
const rules = {
  ignoreFields: [['price']],
  withdrawnAs: 'updated' as const,
  isDelta: false,
  isOutdated: (): boolean => false,
};
const removing = { ...rules, withdrawnAs: 'removed' as const };
const late = { isOutdated: (): boolean => true };

it.each<
  [
    what: string,
    item: Fields,
    known: typeof living | undefined,
    rules: typeof rules | typeof removing,
    Judgement['kind'],
  ]
>([
  ['a product that the mirror does not have', {}, undefined, rules, 'new'],
  ['a withdrawn product that the mirror does not have', withdrawn, undefined, rules, 'new'],
  ['the same, where withdrawn products are removed', withdrawn, undefined, removing, 'absent'],
  ['a product as the mirror has it', {}, living, rules, 'same'],
  ['members in another order', { price: 1, title: 'old' }, living, rules, 'same'],
  ['a change in an ignored field', { price: 2 }, living, rules, 'same'],
  ['a change in another field', { title: 'new', price: 2 }, living, rules, 'changed'],
  ['a change that a later read contradicts', { title: 'new' }, living, { ...rules, ...late }, 'outdated'],
  ['a product that was removed', {}, tombstone, rules, 'changed'],
  ['a change in an ignored field of a product that was removed', { price: 2 }, tombstone, rules, 'changed'],
  ['a removed product that a later read contradicts', {}, tombstone, { ...rules, ...late }, 'outdated'],
  ['a withdrawn product in a delta, over its tombstone', withdrawn, tombstone, { ...rules, isDelta: true }, 'same'],
  ['a withdrawn product in a list, over its tombstone', withdrawn, tombstone, rules, 'changed'],
  ['a product that is withdrawn', withdrawn, living, rules, 'changed'],
  ['a product that is withdrawn, and removed then', withdrawn, living, removing, 'withdrawn'],
  ['a withdrawal that a later read contradicts', withdrawn, living, { ...removing, ...late }, 'same'],
  ['a withdrawal of what was removed', withdrawn, tombstone, removing, 'same'],
])('an item is judged: %s', (_what, item, known, given, kind) => {
  expect(judgeItem(product(item), known, given).kind).toBe(kind);
});
