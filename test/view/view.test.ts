import { python, sqlite3, sqliteToolsAvailable } from '@catchword/testing/sqlite-tools';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openHarness } from '../../src/contract/harness.ts';
import { costOf } from '../../src/view/expression-cost.ts';
import { compileView, type View } from '../../src/view/view.ts';

const NAMES = { where: 'WHERE', fields: 'FIELDS' };

function where(text: string): View {
  return compileView({ where: text, fields: null }, NAMES);
}

function fields(text: string): View {
  return compileView({ where: null, fields: text }, NAMES);
}

const PRICED = (currency: string, value: string): string =>
  `"variants":[{"prices":[{"currency":"USD","value":"1"},{"currency":"${currency}","value":${value}}]}]`;
const BODIES: Readonly<Record<string, string>> = {
  A: `{"vbid":"A","title":"Tides","format":"epub","language":"en","sales_rights":["CZ","SK"],${PRICED('EUR', '"9.50"')}}`,
  B: `{"vbid":"B","title":"tides II","format":{"name":"pdf"},"distributable":"false","edition":2,${PRICED('CZK', '10.50')}}`,
  1: `{"vbid":"1","title":7,"sales_rights":["WORLD"],"identifiers":{"eisbn_canonical":9780000000002}}`,
  null: `{"vbid":"null","title":null,"variants":[{},{"prices":null}],"sales_rights":{},"contributors":["Ada","Bo"]}`,
  'D d': `{"vbid":"D d","title":"🌊 \\u0000 O'Hara","variants":[{"prices":[{"currency":"EUR","value":12345678901234567890}]}]}`,
};

const HAS_EUR = `EXISTS (SELECT 1 FROM json_each(body, '$.variants') v, json_each(v.value, '$.prices') p
  WHERE p.value->>'currency' = 'EUR')`;

const OF_ELEMENTS = (condition: string): string => `EXISTS (SELECT 1 FROM json_each(body, '$.a') v WHERE ${condition})`;

const FILTERS = [
  "title = 'Tides'",
  "title LIKE 'tides%' AND NOT distributable",
  'title = 7',
  'vbid = 1',
  "vbid < 'B'",
  'e_isbn = 9780000000002',
  'title IS NULL',
  "title <> 'Tides'",
  "format IN ('epub', 'pdf') -- by name",
  HAS_EUR,
  `NOT ${HAS_EUR}`,
  `EXISTS (SELECT 1 FROM json_each(body, '$.variants') v WHERE EXISTS
     (SELECT 1 FROM json_each(v.value, '$.prices') p WHERE p.value->>'value' > 10))`,
  `EXISTS (SELECT 1 FROM json_each(body, '$.variants') v,
     json_each(CASE v.type WHEN 'object' THEN v.value ELSE '{}' END, '$.prices') p WHERE p.value->>'currency' = 'CZK')`,
  "EXISTS (SELECT 1 FROM json_each(sales_rights) WHERE value IN ('CZ', 'WORLD'))",
  "'CZ' IN (SELECT value FROM json_each(sales_rights))",
  `(SELECT max(CAST(p.value->>'value' AS REAL)) FROM json_each(body, '$.variants') v,
     json_each(v.value, '$.prices') p) > 10`,
  "contributors LIKE '%bo%' OR json_extract(body, '$.edition') = 2",
  "body->>'edition' >= 1 AND language IS NULL",
  'catalog.language IS NOT NULL',
  "title COLLATE nocase = 'TIDES'",
  "'CZ' NOT IN (SELECT value FROM json_each(sales_rights))",
  'language NOT IN (SELECT value FROM json_each(\'["cs","sk"]\'))',
  'edition = 2 AND edition < vbid',
  'EXISTS (SELECT 1 FROM json_each(sales_rights) WHERE value = title OR value = edition)',
  "EXISTS (SELECT 1 FROM json_each(body) v, json_each(iif(v.type = 'array', v.value, '[]')) w WHERE v.type <> w.type)",
  "(SELECT group_concat((value->>'sku') || length(value)) FROM json_each(body, '$.variants')) IS NULL",
  // SQLite would read the second list for each element of the first one.
  "EXISTS (SELECT 1 FROM json_each(sales_rights) WHERE value = 'CZ') AND EXISTS (SELECT 1 FROM json_each(body, '$.variants'))",
  `NOT EXISTS (SELECT 1 FROM json_each(body, '$.variants') v
     WHERE EXISTS (SELECT 1 FROM json_each(v.value, '$.prices') p WHERE p.value->>'currency' = 'USD')
       AND exists (SELECT 1 FROM json_each(v.value, '$.prices') p WHERE p.value->>'currency' = 'EUR'))`,
  // SQLite reads no column for these.
  "title = 'x' OR 1",
  "Format IN () OR (language = 'en' AND 0)",
  "(language, format) IN (('en', 'epub'), ('cs', 'pdf'))",
  'language IN (SELECT value FROM json_each(\'["en","cs"]\'))',
];

describe.skipIf(!sqliteToolsAvailable)('a filter', () => {
  it('matches exactly the products that sqlite3 and Python count in the view catalog', { tags: ['slow'] }, async () => {
    const mirror = openHarness();
    onTestFinished(() => mirror.close());
    mirror.change(Object.entries(BODIES).map(([vbid, body]) => ({ vbid, body })));
    const counted: string[] = [];
    const matched: string[] = [];
    for (const text of FILTERS) {
      const view = where(text);
      const sql = `SELECT count(*) FROM catalog WHERE ${text}\n`;
      counted.push(
        [text, ...(await sqlite3(mirror.store.path, sql)), ...(await python(mirror.store.path, sql))].join(' '),
      );
      const count = Object.entries(BODIES).filter(([vbid, body]) => view.of(vbid, body) === body).length;
      matched.push(`${text} ${count} ${count}`);
      expect(view.failures().count).toBe(0);
    }
    expect(matched).toEqual(counted);
  });
});

const BAD: readonly (readonly [text: string, error: RegExp])[] = [
  ['titel = 1', /WHERE: no such column: titel/],
  ["changed_at > '2026'", /changed_at is a column of the mirror/],
  ['random() > 0', /the function random is not available/],
  ["on_sale_date < datetime('now')", /datetime is not available/],
  ['on_sale_date < current_timestamp', /current_timestamp is not available/],
  ['last_insert_rowid() = 0', /last_insert_rowid is not available/],
  ['length(zeroblob(1000000000)) > 1', /zeroblob is not available/],
  ["printf('%1000000000s', '') = ''", /printf is not available/],
  ["title REGEXP 'x'", /no such function: REGEXP/],
  ['EXISTS (SELECT 1 FROM prices)', /prices cannot be read here/],
  ['EXISTS (SELECT 1 FROM catalog c)', /it reads more than the product/],
  ['EXISTS (SELECT 1 FROM sqlite_schema)', /it reads more than the product/],
  ["EXISTS (SELECT 1 FROM pragma_table_info('x'))", /it reads more than the product/],
  ['EXISTS (SELECT 1 FROM json_tree(body))', /it reads more than the product/],
  ['(SELECT count(*) FROM json_each(body), json_each(body), json_each(body)) > 3', /reads the same again/],
  [
    "EXISTS (SELECT 1 FROM json_each(body, '$.a') a WHERE a.value IN (SELECT value FROM json_each(body)))",
    /same again/,
  ],
  ['(SELECT value FROM json_each(body) ORDER BY (SELECT count(*) FROM json_each(body)) LIMIT 1) = 1', /same again/],
  ["EXISTS (SELECT 1 FROM json_each(body) v WHERE v.value || title = 'x')", /copies a field/],
  ['EXISTS (SELECT 1 FROM json_each(body) v WHERE v.value = lower(body))', /lower reads the product again/],
  ["(SELECT value FROM json_each(body, '$.a') ORDER BY sales_rights LIMIT 1) = 1", /copies a field/],
  ['body LIKE title', /must be a literal/],
  ['instr(body, title)', /must be a literal/],
  ['(WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c)', /WITH is not available/],
  ['(SELECT a FROM (SELECT body || body AS a FROM json_each(body)))', /a query in FROM/],
  ["(SELECT 1 FROM json_each('[]') j, ((SELECT body AS a FROM json_each(body))))", /a query in FROM/],
  ['rowid = 1', /^WHERE: no such column: rowid/],
  ['_rowid_ IS NOT NULL', /^WHERE: no such column: _rowid_/],
  ['EXISTS (SELECT 1 FROM json_each(body) WHERE catalog.oid = 1)', /^WHERE: it reads more than the product/],
  [
    `length(${'json_quote('.repeat(7)}json_array(${Array(100).fill('body').join(', ')})${" || '')".repeat(7)}) > 1`,
    /reads and makes more than/,
  ],
  [`length(json_array(${Array(90).fill('body').join(', ')})) > 1`, /reads and makes more than/],
  [
    `length(CASE WHEN 1 = title THEN ${'json_quote('.repeat(8)}body${" || '')".repeat(8)} ELSE 'x' END) > 1`,
    /reads and makes more than/,
  ],
  [
    "(SELECT length(group_concat(fullkey || path || fullkey || path || fullkey)) FROM json_each(body, '$.list')) > 1",
    /reads and makes more/,
  ],
  // Found at random: 50,000 elements sort as many copies of the product.
  [
    "(SELECT v.id FROM json_each(body, '$.a') v ORDER BY json_object('a', body, 'b', v.id)) > 1",
    /json_object reads the product again/,
  ],
  ["(SELECT v.id FROM json_each(body, '$.a') v ORDER BY max('ab', title)) > 1", /max reads the product again/],
  ["(SELECT title FROM json_each(body, '$.a') v ORDER BY 'ab' LIMIT 1) = 'x'", /reads and makes more/],
  ["(SELECT v.id FROM json_each(body, '$.a') v, json_each(v.value) w ORDER BY v.value) > 1", /reads and makes more/],
  [
    `(SELECT json_group_array(json_object('s', v.value->>'sku', 'p', p.value))
       FROM json_each(body, '$.variants') v, json_each(v.value, '$.prices') p) LIKE 'x'`,
    /reads and makes more/,
  ],
  // SQLite makes the text of the outer element again for each inner one, also only to compare it.
  [
    `EXISTS (SELECT 1 FROM json_each(body) v, json_each(CASE v.type WHEN 'array' THEN v.value ELSE '[]' END) w
       WHERE v.value = w.value)`,
    /reads and makes more/,
  ],
  ['EXISTS (SELECT 1 FROM json_each(body) v, json_each(v.value) w WHERE w.key > v.fullkey)', /reads and makes more/],
  ['EXISTS (SELECT 1 FROM json_each(body) v, json_each(v.value) w WHERE w.key > v.key)', /reads and makes more/],
  // An element of one character becomes a number of 22.
  [
    `length(${'json_quote('.repeat(3)}(SELECT group_concat((value / -3e300) || (value / -3e300) || (value / -3e300))
       FROM json_each(body, '$.a'))${" || '')".repeat(3)}) > 1`,
    /reads and makes more/,
  ],
  // A field that only some elements get, as a branch or a subquery of its own.
  [OF_ELEMENTS("length(CASE WHEN v.value = 1 THEN title ELSE 'x' END) = 3"), /length reads the product again/],
  [OF_ELEMENTS("length(iif(v.value = 1, (SELECT title), 'x')) = 3"), /reads and makes more/],
  [
    "length((SELECT group_concat(CASE WHEN v.value = 1 THEN title END) FROM json_each(body, '$.a') v)) = 5",
    /group_concat reads the product again/,
  ],
  ["(SELECT v.id FROM json_each(body, '$.a') v ORDER BY iif(v.value = 1, title, 'x')) = 1", /copies a field/],
  // Texts of many digits that are read as numbers.
  [OF_ELEMENTS('title + v.value > 1e400'), /reads and makes more/],
  [OF_ELEMENTS('-title = v.value + 1'), /reads and makes more/],
  [OF_ELEMENTS('CAST(title AS INTEGER) < v.value - 5'), /reads and makes more/],
  [OF_ELEMENTS('CAST(v.value AS INTEGER) = title'), /reads and makes more/],
  [OF_ELEMENTS('NOT CASE WHEN v.value = 1 THEN title ELSE title END'), /reads and makes more/],
  [OF_ELEMENTS("iif(v.value = 1, title, 'x') = title"), /reads and makes more/],
  [`json_extract(body, ${Array(240).fill("'$.a[#-1]'").join(', ')}) = 1`, /reads and makes more/],
  [`json_remove(body, ${Array(240).fill("'$.a[#-1]'").join(', ')}) = 1`, /reads and makes more/],
  [
    Array.from({ length: 54 }, () => `coalesce(${Array.from({ length: 20 }, (_, n) => `vbid<${n}`).join(',')})`).join(
      ' OR ',
    ),
    /more than 4000 instructions/,
  ],
  ['1) OR (1', /a parenthesis is closed/],
  ['1 OR (1', /a parenthesis is not closed/],
  ["title = 'x'; DROP TABLE catalog", /more than one statement/],
  ['title = ?', /parameter/],
  ['title = :title', /parameter/],
  ['count(*) > 0', /misuse of aggregate/],
  ['row_number() OVER () > 0', /misuse of window/],
  ['title = ', /syntax error/],
  ['title = /* x', /incomplete input/],
  [`title = '${'x'.repeat(20_000)}'`, /more than 10000 characters/],
  ['('.repeat(3_000) + ')'.repeat(3_000), /Recursion limit/],
  ["EXISTS (SELECT 1 FROM json_each(body) v WHERE v.json = 'x')", /json of json_each is the whole product/],
  [`body LIKE '%${'a'.repeat(400)}%'`, /searches for more than 400 characters/],
  [`title LIKE '%' || '${'a'.repeat(400)}'`, /searches for more than 400 characters/],
  [`trim(body, '${'a'.repeat(201)}') = title LIKE '${'a'.repeat(200)}'`, /searches for more than 400 characters/],
  [Array.from({ length: 101 }, () => 'lower(body) = 1').join(' OR '), /calls functions more than 100 times/],
  [`EXISTS (SELECT 1 FROM json_each(body) WHERE ${'lower('.repeat(85)}value${')'.repeat(85)})`, /too much for each/],
  [OF_ELEMENTS(Array.from({ length: 33 }, () => "v.value->>'a' = 1").join(' OR ')), /too much for each/],
  [OF_ELEMENTS(Array.from({ length: 70 }, () => "v.fullkey = 'a'").join(' OR ')), /too much for each/],
  [`EXISTS (SELECT 1 FROM json_each(body) WHERE value LIKE '%${'a'.repeat(40)}')`, /searches for more than 400/],
  [`EXISTS (SELECT 1 FROM json_each(body) WHERE value = '${'a'.repeat(51)}')`, /at most 50 characters/],
  [Array.from({ length: 34 }, () => 'body').join(' || '), /more than 32 times/],
  [
    `length(${'trim("json_quote"('.repeat(9)}body${'))'.repeat(9)}) > 0`,
    /reads and makes more than 250 times the product/,
  ],
  ['EXISTS (SELECT 1 FROM json_each(json_array(trim(json_quote(body)))))', /JSON that the expression makes/],
  // A list that the expression makes has more elements than a product.
  [
    "EXISTS (SELECT 1 FROM json_each('[' || (SELECT group_concat('1,1,1,1') FROM json_each(body, '$.a')) || ']'))",
    /JSON that the expression makes/,
  ],
  [`EXISTS (SELECT 1 FROM json_each('[' || body || ',' || body || ']') v)`, /JSON that the expression makes/],
  [
    "EXISTS (SELECT 1 FROM json_each(body, '$.a') v, json_each(iif(v.type = 'object', v.value, '[1,1,1]')) w)",
    /JSON that the expression makes/,
  ],
  // Each element of a list would have the path to it.
  ["length((SELECT group_concat(w.path) FROM json_each(body, '$.a.' || title) w)) > 1", /path of json_each must be a/],
  ['(SELECT max(w.root) FROM json_each w WHERE w.json = body AND w.root = title) > 1', /path of json_each must be a/],
  [
    "EXISTS (SELECT 1 FROM json_each(body, '$.a') v, json_each(v.value, '$.' || v.value) w WHERE w.path = 'x')",
    /path of json_each must be a/,
  ],
  // One branch has a literal, and another one has not.
  [
    "length((SELECT group_concat(w.path) FROM json_each(body, iif(vbid = 'A', '$.' || title, '$.a')) w)) > 1",
    /path of json_each must be a/,
  ],
  [
    "EXISTS (SELECT 1 FROM json_each(body, coalesce(title, '$.a')) w WHERE w.path = 'x')",
    /path of json_each must be a/,
  ],
  // A literal of bytes is copied for each element, too.
  [`length((SELECT group_concat(x'${'61'.repeat(500)}') FROM json_each(body, '$.a'))) > 1`, /reads and makes more/],
  // SQLite evaluates what stands behind GROUP BY for each group.
  [
    "EXISTS (SELECT 1 FROM json_each(body, '$.a') v GROUP BY v.key HAVING length(title || v.key) = 0)",
    /GROUP is not available/,
  ],
  ["main.catalog.title = 'x'", /MAIN is not available/],
  [Array.from({ length: 17 }, () => 'EXISTS (SELECT 1 FROM json_each(body))').join(' OR '), /more than 16 times/],
];

describe('an expression', () => {
  it.each(BAD)('that is not a bounded function of the product is rejected: %s', (text, error) => {
    expect(() => where(text)).toThrow(error);
    expect(() => compileView({ where: text, fields: null }, NAMES, 'USAGE')).toThrow(
      expect.objectContaining({ code: 'USAGE' }),
    );
  });

  const members = ['amount', 'currency', 'type', 'from', 'to'];
  it.each([1, 2, 3, 4, 5])(
    'may choose %i members of each element, under names and paths of any usual length',
    (count) => {
      for (const path of [(member: string) => `$.${member}`, (member: string) => member]) {
        const chosen = members.slice(0, count).map((member) => `'${member}', p.value ->> '${path(member)}'`);
        const view = fields(
          `json_object('prices', (SELECT json_group_array(json_object(${chosen.join()})) FROM json_each(body, '$.a') p))`,
        );
        const price = Object.fromEntries(members.slice(0, count).map((member) => [member, member]));
        expect(JSON.parse(view.of('A', JSON.stringify({ a: [price] })) ?? '')).toEqual({ vbid: 'A', prices: [price] });
      }
    },
  );

  it.each([
    "v.value->>'value' > 10 AND v.value->>'currency' = 'CZK'",
    "CAST(v.value->>'value' AS REAL) * 1.2 > 10",
    'v.value = title COLLATE nocase',
    "v.value IN ('a', 'b', title)",
  ])('may judge each element: %s', (condition) => {
    expect(where(OF_ELEMENTS(condition)).of('A', '{"a":[]}')).toBeNull();
  });

  it('that compares each element with a field reads the field once', () => {
    const body = `{"title":"x","a":[${'1,'.repeat(200_000)}"x"]}`;
    expect(where("EXISTS (SELECT 1 FROM json_each(body, '$.a') WHERE value = title)").of('A', body)).toBe(body);
  });

  it('that fails for a product counts as nothing, and is counted', () => {
    const view = where("abs(json_extract(body, '$.n')) > 1");
    expect(view.of('A', '{"n":-5}')).toBe('{"n":-5}');
    expect(view.of('B', '{"n":-9223372036854775808}')).toBeNull();
    expect(view.of('C', 'not JSON')).toBeNull();
    expect(view.failures()).toEqual({ count: 2, last: expect.stringMatching(/^C: malformed JSON/) });
  });
});

describe('the fields of a view', () => {
  const body = '{"b": 10.50,"vbid":"A","m":{"x":1,"y":{"z": [1, 2]},"w":12345678901234567890},"a":null}';

  it('that are a list keep the bytes and the order of the product', () => {
    expect(fields('a, b').of('A', body)).toBe('{"b":10.50,"vbid":"A","a":null}');
    expect(fields('m.y.z, m.w, m.none, b.c, none').of('A', body)).toBe(
      '{"vbid":"A","m":{"y":{"z":[1, 2]},"w":12345678901234567890}}',
    );
    expect(fields('m.y, m').of('A', body)).toBe('{"vbid":"A","m":{"x":1,"y":{"z": [1, 2]},"w":12345678901234567890}}');
    expect(fields('a').of('A', '{"a":1}')).toBe('{"vbid":"A","a":1}');
  });

  it('that are an expression keep the digits of numbers', () => {
    const view = fields("json_object('n', body->'b', 'w', body->'$.m.w', 'z', json_extract(body, '$.m.y.z'))");
    expect(view.of('A', body)).toBe('{"vbid":"A","n":10.50,"w":12345678901234567890,"z":[1,2]}');
    const cheapest =
      fields(`json_object('vbid', vbid, 'eur', (SELECT p.value->>'value' FROM json_each(body, '$.variants') v,
      json_each(v.value, '$.prices') p WHERE p.value->>'currency' = 'EUR' ORDER BY 1 LIMIT 1))`);
    expect(cheapest.of('A', BODIES.A ?? '')).toBe('{"vbid":"A","eur":"9.50"}');
    expect(fields('title || vbid').of('A', '{"title":"x"}')).toBeNull();
  });

  it.each(['x', '{a:1}', '1}{"b":2', '[1}'])('that join to no JSON are a failure, not an event: %s', (title) => {
    const view = fields(`'{"a":' || title || '}'`);
    expect(view.of('A', JSON.stringify({ title }))).toBeNull();
    expect(view.failures().last).toBe('A: the fields are not a JSON object');
    expect(view.of('A', '{"title":"[1]"}')).toBe('{"vbid":"A","a":[1]}');
  });

  it('that have more than 4,000,000 characters are a failure', () => {
    const view = fields(`json_object('a', json_array(${Array(9).fill('title').join()}))`);
    expect(view.of('A', JSON.stringify({ title: 'x'.repeat(500_000) }))).toBeNull();
    expect(view.failures().last).toBe('A: the fields have more than 4000000 characters');
    expect(view.of('A', JSON.stringify({ title: 'x'.repeat(400_000) }))).toHaveLength(3_600_045);
  });
});

describe('the members that a view reads', () => {
  it.each([
    ["title = 'x' AND e_isbn IS NULL", 'title', ['identifiers', 'title', 'vbid']],
    [HAS_EUR, 'title, metadata.description', ['metadata', 'title', 'variants', 'vbid']],
    [
      "body->'x'->>'y' = 1 OR json_extract(body, '$.\"odd key\".z') = 2 OR body->>'$.q[0]' = 1",
      'vbid',
      ['odd key', 'q', 'vbid', 'x'],
    ],
    ["body->>'$.odd-key' = 1 OR json_extract(body, '$.né[0].x') = 2", 'vbid', ['né', 'odd-key', 'vbid']],
    ["EXISTS (SELECT 1 FROM json_each(body, '$.odd list') WHERE value = 1)", 'vbid', ['odd list', 'vbid']],
    // SQLite reads the name as a path: `a`, `x"`.
    [`body->>'a".x' = 1 OR body->>'b.y' = 1`, 'vbid', ['a', 'b.y', 'vbid']],
    [`body->>'a\\u0062' = 1`, 'title', null],
    // SQLite chooses between constants once, before the program reads a product.
    ["body->>CASE WHEN 1 THEN 'a' ELSE 'b' END = 1", 'title', null],
    ["json_extract(body, CASE 1 WHEN 1 THEN x'242e61' ELSE '$.b' END) = 1", 'title', null],
    ["json_type(body, '$.a') = 'null' AND json_array_length(body, '$.b.c') > 1", 'vbid', ['a', 'b', 'vbid']],
    ["body LIKE '%x%'", 'title', null],
    ['json_extract(body, title) = 1', 'title', null],
    ["json_extract(body, '$.a', '$.b') = 1", 'title', null],
    ["body->>iif(language = 'en', 'usd', 'eur') > 10", 'title', null],
    ["json_extract(body, coalesce(format, '$.a')) = 1", 'title', null],
    ["EXISTS (SELECT 1 FROM json_each(body) WHERE key = 'x')", 'title', null],
    ["json_extract(lower(body), '$.a') = 1", 'title', null],
    ["title = 'x'", null, null],
  ] as const)('are known: %s', (filter, chosen, keys) => {
    const view = compileView({ where: filter, fields: chosen }, NAMES);
    expect(view.keys === null ? null : [...view.keys].sort()).toEqual(keys);
  });
});

it('views that are not used any more take no memory until the garbage collector runs', () => {
  const prepare = (views: number, from: number): void => {
    for (let nth = from; nth < from + views; nth++) where(`title <> '${nth}'`);
  };
  prepare(100, 0);
  const before = process.memoryUsage().rss;
  prepare(1_500, 100);
  expect((process.memoryUsage().rss - before) / 1e6).toBeLessThan(45);
});

it('a list that names more than 200 different members is refused', () => {
  const paths = (count: number): string => Array.from({ length: count }, (_, n) => `m.m${n}`).join(',');
  expect(fields(paths(200)).paths).toHaveLength(200);
  expect(() => fields(paths(201))).toThrow(/^FIELDS: it names more than 200 members/);
});

it('a list of many equal members is prepared in time that grows with its length', {
  tags: ['slow'],
  timeout: 60_000,
}, () => {
  // If the time grew with the square of the length, this would take minutes.
  const list = Array.from({ length: 600_000 }, () => 'title').join(',');
  expect(fields(list).of('A', '{"vbid":"A","title":1}')).toBe('{"vbid":"A","title":1}');
});

it('an instruction of SQLite whose cost is not known is named, so that the expression is refused', () => {
  const rest = { p1: 0, p2: 0, p3: 0, p4: null, p5: 0 };
  const program = ['Init', 'Rewind', 'Program', 'Halt'].map((opcode, addr) => ({ ...rest, p2: 4, addr, opcode }));
  expect(costOf(program, { loopAround: () => undefined }).unknown).toBe('Program');
});
