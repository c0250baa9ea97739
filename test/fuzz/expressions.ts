import { readFileSync, writeFileSync } from 'node:fs';
import { hasCode } from '@catchword/base/errors';
import { createRandom } from '@catchword/sandbox/catalog/random';
import { readerView } from '../../src/view/view.ts';
import { startGuard } from './guard.ts';

/*
 * Searches for expressions that a view may have and that cost too much: `npx tsx test/fuzz/expressions.ts SECONDS SEED`. The
 * most expensive ones are kept, and changed further. Printed is each that exceeds a bound on one of the products, the check
 * included; and the most expensive ones at the end. Time is that of the processor, because other programs take turns.
 */

const [seconds = 60, seed = 1] = process.argv.slice(2).map(Number);
const BOUNDS = { ms: 200, mb: 64 };
const SIZE = 100_000;
const KEPT = 40;

const filled = (text: string, size = SIZE): string => text.repeat(Math.ceil(size / text.length)).slice(0, size);
const list = (element: string): unknown => JSON.parse(`[${filled(`${element},`, SIZE - 40).replace(/,[^,]*$/, '')}]`);
const nested = (depth: number): unknown => JSON.parse(`${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`);
const PRODUCTS = [
  { title: filled('a') },
  { title: filled('"\\', SIZE / 2), format: 'b' },
  { title: filled('aé b', SIZE / 2), sales_rights: list('"é"') },
  { sales_rights: list('1'), title: 't' },
  { sales_rights: list('"\\""'), title: filled('ab') },
  {
    variants: Array.from({ length: 400 }, (_, at) => ({
      a: filled('1,', 150),
      prices: [{ a: at }, { a: 'x' }],
    })),
  },
  {
    variants: [{ a: filled('a', SIZE / 2), prices: Array.from({ length: 20_000 }, () => 1) }],
    sales_rights: [list('1')],
  },
  { variants: Array.from({ length: 9_000 }, () => ({ a: 1 })), title: 'a' },
  { a: nested(900), sales_rights: Array.from({ length: 90 }, () => nested(150)), title: filled('a', 9_000) },
  { title: filled('k', SIZE / 4), a: { [filled('k', SIZE / 4)]: Array.from({ length: 20_000 }, () => 1) } },
  Object.fromEntries(Array.from({ length: 8_000 }, (_, at) => [`m${at}`, at])),
].map((product, at) => JSON.stringify({ vbid: `P${at}`, ...product }));

type Node = readonly [form: string, ...parts: Node[]];

const random = createRandom(seed);
const below = (bound: number): number => Math.floor(random() * bound);
const pick = <T>(choices: readonly T[]): T => choices[below(choices.length)] as T;

/** Forms with places for others: E any value, C a condition, J JSON, F sources, V a value of an element. */
const FORMS: Readonly<Record<string, readonly string[]>> = {
  E: [
    'title',
    'body',
    'sales_rights',
    'format',
    "'a'",
    "'%a%a%'",
    "'*[ab]*[!b]a'",
    `'${filled('ab', 45)}'`,
    `'${filled('"', 350)}'`,
    '1',
    'NULL',
    'V',
    'V',
    "J->'$.a'",
    "J->>'title'",
    "J->'$.sales_rights[0]'",
    "J->'$.variants[#-1].prices'",
    'E || E',
    'E || E',
    'lower(E)',
    'upper(E)',
    "trim(E, 'ab')",
    "rtrim(E, '\"')",
    'substr(E, 2)',
    'substr(E, -5, 3)',
    'length(E)',
    "instr(E, 'aab')",
    "E LIKE '%a%b%'",
    "E GLOB '*a*b'",
    `E GLOB '${filled('*[ab]', 90)}'`,
    'coalesce(E, E)',
    'nullif(E, E)',
    'max(E, E)',
    'min(E, E)',
    'iif(C, E, E)',
    'CASE WHEN C THEN E ELSE E END',
    'CAST(E AS TEXT)',
    'CAST(E AS REAL)',
    'CAST(E AS BLOB)',
    'abs(E)',
    'round(E)',
    'unicode(E)',
    'json(J)',
    'json_array(E, E)',
    'json_array(E, E, E, E, E, E, E, E)',
    "json_object('a', E, 'b', E)",
    'json_quote(E)',
    "json_insert(J, '$.b', E)",
    "json_set(J, '$.a', E, '$.b', E)",
    "json_replace(J, '$.title', E)",
    "json_remove(J, '$.a', '$.title')",
    "json_extract(J, '$.a', '$.title')",
    'json_array_length(J)',
    "json_type(J, '$.a')",
    'json_valid(E)',
    'E + E',
    'E * E',
    '(V / -3e300)',
    "(V ->> '$.a')",
    'C',
    '(SELECT count(*) FROM F)',
    '(SELECT group_concat(E) FROM F)',
    "(SELECT string_agg(E, 'ab') FROM F)",
    '(SELECT json_group_array(E) FROM F)',
    '(SELECT json_group_object(V, E) FROM F)',
    '(SELECT max(E) FROM F)',
    '(SELECT sum(E) FROM F WHERE C)',
    '(SELECT count(DISTINCT E) FROM F)',
    '(SELECT E FROM F ORDER BY E LIMIT 1)',
    '(SELECT group_concat(E) FROM F GROUP BY E)',
    '(SELECT E FROM F WHERE C LIMIT 1)',
    '(SELECT count(*) FROM F GROUP BY E HAVING C)',
    '(SELECT group_concat(E ORDER BY E) FROM F)',
    '(SELECT max(E) OVER (ORDER BY E) FROM F)',
    '(SELECT E FROM F UNION SELECT E FROM F LIMIT 1)',
    '(SELECT count(*) FILTER (WHERE C) FROM F)',
  ],
  C: [
    'E = E',
    'E < E',
    'E <> E',
    'E IS E',
    'E BETWEEN E AND E',
    'C AND C',
    'C OR C',
    'NOT C',
    "E IN ('a', 'b', E)",
    'E IN (SELECT E FROM F)',
    'EXISTS (SELECT 1 FROM F WHERE C)',
    'E NOT IN (SELECT E FROM F WHERE C)',
    '(E, E) IN (SELECT E, E FROM F)',
    'E COLLATE nocase = E',
  ],
  J: ['body', 'sales_rights', 'body', "body->'$.a'", 'V', 'E'],
  F: [
    'json_each(body) v',
    'json_each(sales_rights) v',
    "json_each(body, '$.variants') v",
    "json_each(body, '$.a') v",
    'json_each(J) v',
    "json_each(body, '$.variants') v, json_each(v.value, '$.prices') w",
    'json_each(body) v, json_each(v.value) w',
    'json_each(sales_rights) v, json_each(v.value) w',
    'json_each(body) v, json_each(v.value) w, json_each(w.value) x',
    'json_each(V) v',
    "json_each('[' || E || ']') v",
    "json_each(body, '$.a.' || title) v",
    "json_each(body) v, json_each(CASE v.type WHEN 'array' THEN v.value ELSE '[]' END) w",
    "json_each(sales_rights) v, json_each(iif(C, V, '[1,1,1,1]')) w",
  ],
  V: ['v.value', 'v.value', 'v.key', 'v.fullkey', 'v.path', 'v.type', 'v.atom', 'w.value', 'v.id', 'x.value'],
};
const PLACE = /\b[ECJFV]\b/g;

function made(kind: string, depth: number): Node {
  const forms = FORMS[kind] ?? [];
  const form = pick(depth > 0 ? forms : forms.filter((one) => !/\b[ECJF]\b/.test(one)));
  if (form === undefined) return ['1=1'];
  return [`${kind}:${form}`, ...(form.match(PLACE) ?? []).map((part) => made(part, depth - 1))];
}

function textOf([form, ...parts]: Node): string {
  let at = 0;
  return form.replace(/^\w:/, '').replace(PLACE, () => textOf(parts[at++] ?? ['1']));
}

/** Replaces a part by a new one, or by one of another expression. */
function changed(node: Node, other: Node): Node {
  const [form, ...parts] = node;
  const kind = form[0] ?? 'E';
  if (parts.length === 0 || random() < 0.15) {
    const found = random() < 0.5 ? partsOf(other).filter(([name]) => name[0] === kind) : [];
    return found.length > 0 ? pick(found) : made(kind, 1 + below(4));
  }
  const at = below(parts.length);
  return [form, ...parts.map((part, place) => (place === at ? changed(part, other) : part))];
}

function partsOf(node: Node): Node[] {
  const [, ...parts] = node;
  return [node, ...parts.flatMap(partsOf)];
}

/** Peak of the memory of this process, and its size now, in MB. */
function memory(): { readonly peak: number; readonly now: number } {
  const status = readFileSync('/proc/self/status', 'utf8');
  const of = (name: string): number => Number(new RegExp(`${name}:\\s*(\\d+)`).exec(status)?.[1]) / 1024;
  return { peak: of('VmHWM'), now: of('VmRSS') };
}

const guard = startGuard();

interface Cost {
  readonly ms: number;
  readonly mb: number;
}

function measured(text: string, work: () => void): Cost {
  guard(Buffer.from(text));
  // The peak begins again.
  writeFileSync('/proc/self/clear_refs', '5');
  const { now } = memory();
  const began = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(began);
  return { ms: (user + system) / 1_000, mb: memory().peak - now };
}

const larger = (one: Cost, other: Cost): Cost => ({ ms: Math.max(one.ms, other.ms), mb: Math.max(one.mb, other.mb) });

/** @returns null if a view may not have it, what cost too much to see included in `found` */
function costOf(expression: string, isFields: boolean): Cost | null {
  let view: ReturnType<typeof readerView> = null;
  const check = measured(expression, () => {
    try {
      view = readerView(isFields ? { fields: `json_object('a', ${expression})` } : { where: expression });
    } catch (error) {
      if (!hasCode(error, 'USAGE')) throw error;
    }
  });
  const judge = view as ReturnType<typeof readerView>;
  let worst = check;
  if (judge !== null) {
    for (const [at, body] of PRODUCTS.entries()) {
      const cost = measured(expression, () => void judge.of(`P${at}`, body));
      worst = larger(worst, { ...cost, ms: cost.ms + check.ms });
    }
  }
  return judge === null && worst.ms < BOUNDS.ms ? null : worst;
}

const score = ({ ms, mb }: Cost): number => Math.max(ms / BOUNDS.ms, mb / BOUNDS.mb);
const isOver = ({ ms, mb }: Cost): boolean => ms > BOUNDS.ms || mb > BOUNDS.mb;
const shown = (cost: Cost, text: string): string => `${cost.ms.toFixed(0)} ms, ${cost.mb.toFixed(0)} MB: ${text}\n`;

let kept: { readonly node: Node; readonly text: string; readonly cost: Cost }[] = [];
const count = { tried: 0, allowed: 0, over: 0 };
const endsAt = performance.now() + seconds * 1_000;
while (performance.now() < endsAt) {
  const parent = kept.length > 5 && random() < 0.7 ? pick(kept).node : null;
  const node = parent === null ? made(pick(['E', 'C']), 2 + below(4)) : changed(parent, pick(kept).node);
  const text = textOf(node);
  if (text.length > 10_000 || kept.some((one) => one.text === text)) continue;
  count.tried++;
  const isFields = random() < 0.5;
  let cost = costOf(text, isFields);
  if (cost === null) continue;
  count.allowed++;
  // The garbage collector and other programs cost time, too: the least of three counts.
  for (let again = 0; again < 2 && isOver(cost); again++) {
    const next: Cost = costOf(text, isFields) ?? cost;
    cost = { ms: Math.min(cost.ms, next.ms), mb: Math.min(cost.mb, next.mb) };
  }
  if (isOver(cost)) {
    count.over++;
    process.stdout.write(`TOO MUCH ${shown(cost, text)}`);
  }
  kept = [...kept, { node, text, cost }].sort((a, b) => score(b.cost) - score(a.cost)).slice(0, KEPT);
}
for (const { cost, text } of kept.slice(0, 5)) process.stdout.write(shown(cost, text));
process.stdout.write(`${count.tried} tried, ${count.allowed} allowed, ${count.over} too expensive\n`);
process.exitCode = count.over > 0 ? 1 : 0;
