import { CatchwordError } from '@catchword/base/errors';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { compileView, type View } from '../../src/view/view.ts';

/*
 * A view judges only changes of the members that it reads, which are found in SQLite's program: here the plain way, which
 * evaluates the view before and after a change of other members, must agree with it.
 */

const PATHS =
  `'$.a' | 'a' | '$.b' | '$.a.x' | '$.l' | '$.b-c' | 'b-c' | '$."b-c"' | '$.l[0]' | 'a.x' | '$' | '$.é' | 'a".x' |
  'a\\u0062'`.split(/\s*\|\s*/);
/** What stands for a further part: E an expression, C a condition, P a path, L a list. */
const FORMS = {
  P: [
    ...PATHS,
    'E',
    "iif(C, 'a', 'b')",
    "coalesce(E, 'a')",
    "CASE WHEN C THEN '$.a' ELSE '$.b' END",
    "lower('A')",
  ].concat([
    "CASE 1 WHEN 1 THEN 'b' WHEN 2 THEN 'a' END",
    "iif(1, x'62', 'a')",
    "(SELECT 'a' WHERE C)",
    "CAST('a' AS BLOB)",
  ]),
  E: [
    'title',
    'language',
    'sales_rights',
    "'a'",
    '1',
    'NULL',
    'v.value',
    'v.key',
    'body->>P',
    'body->P',
    'E || E',
  ].concat(
    ['json_extract(body, P)', 'json_type(body, P)', 'json_array_length(body, P)', 'coalesce(E, E)', 'iif(C, E, E)'],
    ['CASE E WHEN E THEN E ELSE E END', 'json_array(E, E)', '(SELECT count(*) FROM L WHERE C)', 'max(E, E)'],
    ['(SELECT group_concat(E) FROM L)', '(SELECT E FROM L LIMIT 1)'],
  ),
  C: ['E = E', 'E < E', 'E IS NULL', 'C AND C', 'C OR C', 'NOT C', 'E IN (E, E)', 'E IN (SELECT E FROM L)'].concat([
    'EXISTS (SELECT 1 FROM L WHERE C)',
    'EXISTS (SELECT 1 FROM L) AND NOT EXISTS (SELECT 1 FROM L WHERE C)',
    '(E, E) = (E, E)',
  ]),
  L: ['json_each(body, P) v', 'json_each(body) v', 'json_each(sales_rights) v', 'json_each(body->P) v'],
};
type Part = keyof typeof FORMS;
const PART = /\b[PECL]\b/g;

/** The text of a part, by choices. */
function textOf(part: Part, choices: readonly number[]): string {
  let at = 0;
  const write = (one: Part, depth: number): string => {
    const forms = FORMS[one].filter((form) => depth > 0 || form.match(PART) === null);
    const chosen = forms[(choices[at++] ?? at) % forms.length] ?? '1';
    return chosen.replace(PART, (inner) => write(inner as Part, depth - 1));
  };
  return write(part, 4);
}

const MEMBERS = ['a', 'b', 'ab', 'b-c', 'l', 'é', 'a.x', 'title', 'language', 'sales_rights', 'odd'];
const VALUES = [
  'null',
  '1',
  '"a"',
  '"b"',
  '"x"',
  '[1,2]',
  '["x","a"]',
  '{"x":1}',
  '{"x":"a","l":[1]}',
  'true',
  '"[1]"',
];
const product = fc.record(Object.fromEntries(MEMBERS.map((name) => [name, fc.constantFrom(...VALUES)])), {
  requiredKeys: [],
});
type Product = Readonly<Record<string, string | undefined>>;

const bodyOf = (members: Product): string =>
  `{"vbid":"A"${Object.entries(members)
    .map(([name, value]) => `,${JSON.stringify(name)}:${value}`)
    .join('')}}`;

function viewOf(choices: readonly number[]): View | null {
  const names = { where: 'W', fields: 'F' };
  const isFilter = (choices[0] ?? 0) % 2 === 0;
  const text = textOf(isFilter ? 'C' : 'E', choices);
  try {
    return isFilter
      ? compileView({ where: text, fields: 'vbid' }, names, 'USAGE')
      : compileView({ where: null, fields: `json_object('r', ${text})` }, names, 'USAGE');
  } catch (error) {
    if (error instanceof CatchwordError && error.code === 'USAGE') return null;
    throw error;
  }
}

it('a view is the same whatever members a product has besides those that it reads', { tags: ['slow'] }, () => {
  let judged = 0;
  const choices = fc.noBias(fc.array(fc.nat(9_999), { minLength: 40, maxLength: 40 }));
  fc.assert(
    fc.property(choices, fc.array(fc.tuple(product, product), { minLength: 8, maxLength: 8 }), (chosen, products) => {
      const view = viewOf(chosen);
      const { keys } = view ?? { keys: null };
      if (view === null || keys === null) return;
      judged++;
      for (const [one, other] of products) {
        const read = Object.entries(one).filter(([name]) => keys.has(name));
        const rest = Object.entries(other).filter(([name]) => !keys.has(name));
        const ofRead = view.of('A', bodyOf(Object.fromEntries(read)));
        expect([view.where, view.fields, view.of('A', bodyOf(Object.fromEntries([...read, ...rest])))]).toEqual([
          view.where,
          view.fields,
          ofRead,
        ]);
      }
    }),
    { numRuns: 6_000 },
  );
  expect(judged).toBeGreaterThan(1_000);
});
