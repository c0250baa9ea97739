import { scanPage } from '@catchword/catalog/cut-page';
import { objectMembers, objectText } from '@catchword/catalog/json-text';
import fc from 'fast-check';
import { expect, it } from 'vitest';

/** The texts of the items of a page; null if it is nested too deep. */
function cut(page: string, maxDepth: number): string[] | null {
  const bytes = Buffer.from(page);
  const spans = scanPage(bytes, maxDepth)?.spans ?? null;
  if (spans === null) return null;
  return Array.from({ length: spans.length / 2 }, (_, at) => {
    const [start = 0, length = 0] = spans.subarray(2 * at);
    return bytes.toString('utf8', start, start + length);
  });
}

/** Cuts a page whose items are this array; other members look like items too. */
function cutItems(array: string): string[] {
  return cut(`{"a":{"items":[1,2]},"b":[[3]],"items":${array} ,"num_items":1}`, 64) ?? [];
}

const json = fc.jsonValue({ maxDepth: 4, stringUnit: 'grapheme' });

it('any items array is cut into the texts of its elements', () => {
  fc.assert(
    fc.property(fc.array(json), fc.constantFrom(undefined, 1, '\t'), (values, indent) => {
      const items = cutItems(JSON.stringify(values, null, indent));
      expect(items.map((item) => JSON.parse(item))).toEqual(JSON.parse(JSON.stringify(values)));
    }),
  );
});

it('JSON text splits any object into its members and reassembles it', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string({ unit: 'binary' }), json), fc.constantFrom(undefined, 2), (value, indent) => {
      const text = JSON.stringify(value, null, indent);
      const again = JSON.parse(objectText(objectMembers(text)));
      expect(JSON.stringify(again)).toBe(JSON.stringify(JSON.parse(text)));
    }),
  );
});

it('JSON text changes no byte of a number', () => {
  expect(cutItems('[ 10.50 , 12345678901234567890, {"a": 1e+2} ]')).toEqual([
    '10.50',
    '12345678901234567890',
    '{"a": 1e+2}',
  ]);
  expect(objectMembers('{"a" : 10.50, "b":[1, 2]}')).toEqual(
    new Map([
      ['a', '10.50'],
      ['b', '[1, 2]'],
    ]),
  );
});

it('JSON text ignores quotes, brackets and backslashes inside strings', () => {
  const value = ['\\', '"]', '\\"', 'a\\\\"', '{[', ''];
  expect(cutItems(JSON.stringify(value)).map((item) => JSON.parse(item))).toEqual(value);
});

it('JSON text rejects a page that is nested too deep', () => {
  expect(cut('{"items":[{"a":[1]}]}', 4)).toEqual(['{"a":[1]}']);
  expect(cut('{"items":[{"a":[1]}]}', 3)).toBeNull();
  expect(cut(`{"x":${'['.repeat(1_000_000)}`, 64)).toBeNull();
});

it('JSON text uses the last of repeated "items" members', () => {
  expect(cut('{"items":[1],"items":[2,3]}', 64)).toEqual(['2', '3']);
  expect(cut('{"items":[1],"\\u0069tem\\u0073":[2]}', 64)).toEqual(['2']);
  expect(cut('{"items":[1],"\\\\items":[2],"\\u00":[3],"items\\n":[4]}', 64)).toEqual(['1']);
  expect(cut('{"items":{"a":1}}', 64)).toEqual([]);
});

it('JSON text uses the last value of a repeated key, as JSON.parse does', () => {
  expect(objectMembers('{"a":1,"a":2}')).toEqual(new Map([['a', '2']]));
});

it('JSON text reads empty arrays and objects', () => {
  expect(cutItems('[ ]')).toEqual([]);
  expect(objectMembers('{ }')).toEqual(new Map());
});
