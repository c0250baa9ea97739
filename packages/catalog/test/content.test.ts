import { changedFields, changedPointers, difference, isEmpty, revert, sameContent } from '@catchword/catalog/content';
import { objectMembers, objectText } from '@catchword/catalog/json-text';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { exactValue, rawNumber, rawObject, rawValue } from './raw-json.ts';

/** Sorts keys at every depth. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, member]) => [key, sorted(member)]),
  );
}

/** Writes every character of a key as an escape. */
function escapedKey(key: string): string {
  const units = Array.from({ length: key.length }, (_, at) => key.charCodeAt(at).toString(16).padStart(4, '0'));
  return `"${units.map((unit) => `\\u${unit}`).join('')}"`;
}

it('the comparison ignores the order of keys, but not of array elements', () => {
  expect(sameContent('{"a":1,"b":{"c":2,"d":[3]}}', '{"b": {"d":[3],"c":2}, "a":1}')).toBe(true);
  expect(sameContent('{"a":[1,2]}', '{"a":[2,1]}')).toBe(false);
  expect(sameContent('{"a":{}}', '{"a":[]}')).toBe(false);
  expect(sameContent('{"a":{"b":1}}', '{"a":[["b",1]]}')).toBe(false);
});

it('the comparison omits ignored fields from the comparison', () => {
  const ignored = [['meta', 'seen'], ['views']];
  expect(sameContent('{"a":1,"meta":{"seen":1},"views":7}', '{"a":1,"meta":{"seen":2}}', ignored)).toBe(true);
  expect(sameContent('{"a":1,"meta":{"seen":1,"x":1}}', '{"a":1,"meta":{"seen":2}}', ignored)).toBe(false);
});

it('the comparison omits an ignored array element and keeps the indexes of the others', () => {
  expect(sameContent('{"a":[1,2]}', '{"a":[9,2]}', [['a', '0']])).toBe(true);
  expect(sameContent('{"a":[1,2]}', '{"a":[1,9]}', [['a', '0']])).toBe(false);
  expect(sameContent('{"a":[1]}', '{"a":[]}', [['a', '0']])).toBe(false);
});

it('the comparison omits what * stands for: every element of an array, or every member of an object', () => {
  const same = (pointer: string[], a: string, b: string) => sameContent(`{"a":${a}}`, `{"a":${b}}`, [pointer]);
  expect(same(['a', '*', 'b'], '[{"b":1,"c":1},{"b":2}]', '[{"b":3,"c":1},{}]')).toBe(true);
  expect(same(['a', '*', 'b'], '[{"b":1,"c":1}]', '[{"b":1,"c":2}]')).toBe(false);
  expect(same(['a', '*', 'b'], '[{"b":1}]', '[{"b":1},{"b":1}]')).toBe(false);
  expect(same(['a', '*', 'b'], '{"x":{"b":1}}', '{"x":{"b":2}}')).toBe(true);
  expect(same(['a', '*'], '[1,2]', '[3]')).toBe(true);
  expect(same(['a', '*'], '{"x":1}', '{"y":1,"z":2}')).toBe(true);
  expect(same(['a', '*'], '{}', '[]')).toBe(false);
});

it('the comparison names the innermost fields that differ, as pointers that ignore them', () => {
  const older = '{"a":[{"b":1,"c":[1]},{"b":2}],"d/e":{"~":1,"same":1.0},"gone":1,"seen":1}';
  const newer = '{"seen":2,"a":[{"b":5,"c":[1,2]},{"b":2}],"d/e":{"~":2,"same":1},"new":{"x":1}}';
  const found = changedFields(older, newer, [['seen']]);
  expect([...found].sort()).toEqual(['/a/*/b', '/a/*/c', '/d~1e/~0', '/gone', '/new']);
  const ignored = [...found, '/seen'].map((pointer) => pointer.slice(1).split('/'));
  const unescaped = ignored.map((parts) => parts.map((part) => part.replace('~1', '/').replace('~0', '~')));
  expect(sameContent(older, newer, unescaped)).toBe(true);
});

it.each([
  ['64-bit numbers', '12345678901234567890', '12345678901234567891'],
  ['long fractions', '0.1000000000000000000001', '0.1000000000000000000002'],
  ['a number that no double holds, and null', '1e400', 'null'],
  ['two numbers that no double holds', '1e400', '1e401'],
  ['two numbers next to zero', '1e-400', '2e-400'],
  ['a number and its text', '1', '"1"'],
  ['numbers of opposite signs', '-1', '1'],
])('the comparison distinguishes %s', (_name, older, newer) => {
  for (const ignored of [[], [['seen']]]) {
    const [a, b] = [`{"seen":1,"id":${older}}`, `{"id":${newer},"seen":1}`];
    expect(sameContent(a, b, ignored)).toBe(false);
    expect(sameContent(`{"x":[{"y":${older}}]}`, `{"x":[{"y":${newer}}]}`, ignored)).toBe(false);
    expect(difference(a, b)).toEqual({ before: `{"id":${older}}`, added: [] });
  }
});

it('the comparison treats equal numbers as equal, however they are written', () => {
  for (const number of ['100', '1e2', '1E+2', '100.0', '1000e-1', '0.1e3', '1e0000000000000000000002']) {
    expect(sameContent('{"price":100}', `{"price":${number}}`), number).toBe(true);
  }
  for (const zero of ['0', '-0', '0.0', '0e999999999999999999999']) {
    expect(sameContent('{"price":0}', `{"price":${zero}}`), zero).toBe(true);
  }
});

it('the comparison treats reordered keys as equal even with long strings and numbers', () => {
  const text = '"from 1234567890123456, and on"';
  expect(sameContent(`{"a":${text},"b":[1]}`, `{"b":[1],"a":${text}}`)).toBe(true);
  expect(sameContent('{"a":1234567890123456789,"b":[1]}', '{"b":[1],"a":1234567890123456789}')).toBe(true);
});

it('the comparison compares numbers by their exact value', () => {
  fc.assert(
    fc.property(rawNumber, rawNumber, (a, b) => {
      expect(sameContent(`{"n":${a}}`, `{ "n": ${b}}`)).toBe(exactValue(a) === exactValue(b));
      expect(sameContent(a, `${a.replace(/[eE].*/, '')}0`)).toBe(
        exactValue(a) === exactValue(`${a.replace(/[eE].*/, '')}0`),
      );
    }),
  );
});

it('the comparison does not depend on key order, white space or escapes', () => {
  fc.assert(
    fc.property(rawObject(2), (text) => {
      const members = [...objectMembers(text)].reverse();
      const again = members.map(([key, value]) => `\n${escapedKey(key)} : ${value}`).join(' ,');
      expect(sameContent(text, `{${again}}`)).toBe(true);
    }),
  );
});

it('the comparison distinguishes texts that JSON.parse distinguishes', () => {
  fc.assert(
    fc.property(rawValue(2), rawValue(2), (a, b) => {
      const [x, y] = [sorted(JSON.parse(a)), sorted(JSON.parse(b))];
      if (JSON.stringify(x) !== JSON.stringify(y)) expect(sameContent(a, b)).toBe(false);
    }),
  );
});

it('a difference restores any older version from a newer one without losing a digit', () => {
  fc.assert(
    fc.property(rawObject(2), rawObject(2), (older, newer) => {
      const back = revert(newer, difference(older, newer));
      expect(sameContent(back, older)).toBe(true);
      expect(sorted(JSON.parse(back))).toEqual(sorted(JSON.parse(older)));
      // Changed values are kept exactly as written.
      for (const [key, value] of objectMembers(difference(older, newer).before)) {
        expect(objectMembers(older).get(key)).toBe(value);
      }
    }),
  );
});

it('a difference is empty if, and only if, the content is the same', () => {
  fc.assert(
    fc.property(rawObject(2), rawObject(2), (a, b) => {
      expect(isEmpty(difference(a, b))).toBe(sameContent(a, b));
      const reordered = objectText(new Map([...objectMembers(a)].reverse()));
      expect(isEmpty(difference(a, reordered))).toBe(true);
    }),
  );
});

it('a difference names the fields that were changed, deleted and added', () => {
  const change = difference('{"a":1,"b":2,"c":3}', '{"a":1,"b":5,"d/e":4}');
  expect(change).toEqual({ before: '{"b":2,"c":3}', added: ['d/e'] });
  expect(changedPointers(change)).toEqual(['/b', '/c', '/d~1e']);
});
