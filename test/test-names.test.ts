import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { TEST_CODE } from './support/sources.ts';

const ROOT = new URL('..', import.meta.url);
/** A name after `it(` or after the rows of `it.each([…])(`. */
const NAMES = /(?:\bit(?:\.\w+(?:\([^()]*\))?)*\(|\]\s*(?:as const)?\)\()\s*(['"`])((?:\\.|(?!\1).)*)\1/g;

it('no test has the name of another one, so that a report names one place', () => {
  const places = new Map<string, string[]>();
  for (const file of TEST_CODE) {
    for (const [, , name = ''] of readFileSync(new URL(file, ROOT), 'utf8').matchAll(NAMES)) {
      places.set(name, [...(places.get(name) ?? []), file]);
    }
  }
  expect(places.size).toBeGreaterThan(1_500);
  expect([...places].filter(([, found]) => found.length > 1)).toEqual([]);
});
