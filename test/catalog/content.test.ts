import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { changedPointers, difference, revert, sameContent } from '../../src/catalog/content.ts';

const object = fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd/e', '~f', '"g'), fc.jsonValue({ maxDepth: 2 }));

/** Keys sorted at every depth, so that order makes no difference. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, member]) => [key, sorted(member)]),
  );
}

describe('content', () => {
  it('is the same whatever the order of keys', () => {
    expect(sameContent('{"a":1,"b":{"c":2,"d":[3]}}', '{"b": {"d":[3],"c":2}, "a":1}')).toBe(true);
    expect(sameContent('{"a":[1,2]}', '{"a":[2,1]}')).toBe(false);
    expect(sameContent('{"a":{}}', '{"a":[]}')).toBe(false);
    expect(sameContent('{"a":{"b":1}}', '{"a":[["b",1]]}')).toBe(false);
  });

  it('leaves ignored fields out', () => {
    const ignored = [['meta', 'seen'], ['views']];
    expect(sameContent('{"a":1,"meta":{"seen":1},"views":7}', '{"a":1,"meta":{"seen":2}}', ignored)).toBe(true);
    expect(sameContent('{"a":1,"meta":{"seen":1,"x":1}}', '{"a":1,"meta":{"seen":2}}', ignored)).toBe(false);
  });

  it('never takes numbers for equal that only rounding makes equal', () => {
    expect(sameContent('{"id":12345678901234567890}', '{"id":12345678901234567891}')).toBe(false);
    expect(difference('{"id":12345678901234567890,"b":1}', '{"b":1,"id":12345678901234567890}')).toEqual({
      before: '{}',
      added: [],
    });
  });

  it('goes back from any version to any other', () => {
    fc.assert(
      fc.property(object, object, (older, newer) => {
        const change = difference(JSON.stringify(older), JSON.stringify(newer));
        const back: unknown = JSON.parse(revert(JSON.stringify(newer), change));
        expect(sorted(back)).toEqual(sorted(JSON.parse(JSON.stringify(older))));
      }),
    );
  });

  it('names what changed, vanished and was added', () => {
    const change = difference('{"a":1,"b":2,"c":3}', '{"a":1,"b":5,"d/e":4}');
    expect(change).toEqual({ before: '{"b":2,"c":3}', added: ['d/e'] });
    expect(changedPointers(change)).toEqual(['/b', '/c', '/d~1e']);
  });
});
