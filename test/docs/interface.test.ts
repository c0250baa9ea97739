import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { ONLY, readRuleTags, rowIds, ruleIds } from './interface-page.ts';

const ROOT = new URL('../../', import.meta.url);
const PAGE = readFileSync(new URL('docs/dev/interface.md', ROOT), 'utf8');

/** Sections of the interface document; 4 has only the rules of its parts. */
const SECTIONS = '1 2.1 2.1.1 2.1.2 2.1.3 2.2 2.3 2.4 2.5 3 4.1 4.2 4.3 4.4 4.5 5 6 7 8 9'.split(' ');

const TAGS = readRuleTags();
const IDS = rowIds(PAGE);
const GAPS = [...(PAGE.split('\n## Gaps\n')[1] ?? '').matchAll(/^- \*\*([\d.]+-\d+)\*\*: .+\.$/gm)].map(
  ([, id = '']) => id,
);

/** Tests of commands and of runs start the sandbox, so they show both sides, as rows do. */
function showsSandbox(test: string): boolean {
  const [path = ''] = test.split(' › ');
  if (test.endsWith(ONLY.client)) return false;
  return (
    /^(packages\/sandbox|test\/service)\//.test(path) ||
    /startSandbox|support\/place/.test(readFileSync(new URL(path, ROOT), 'utf8'))
  );
}

function showsClient(test: string): boolean {
  return !test.startsWith('packages/sandbox/') && !test.endsWith(ONLY.sandbox);
}

it('docs/dev/interface.md has every section, and numbers its rules consecutively', () => {
  expect([...PAGE.matchAll(/^## ([\d.]+) \S/gm)].map(([, section]) => section)).toEqual(SECTIONS);
  const counts = new Map(SECTIONS.map((section) => [section, 0]));
  for (const id of IDS) {
    const [section = ''] = id.split('-');
    counts.set(section, (counts.get(section) ?? 0) + 1);
    expect(id).toBe(`${section}-${counts.get(section)}`);
  }
  for (const [section, count] of counts) expect([section, count > 0]).toEqual([section, true]);
  expect([...counts.keys()]).toEqual(SECTIONS);
});

it('docs/dev/interface.md has a row for each tag', () => {
  for (const id of [...TAGS.keys(), ...GAPS]) expect(IDS).toContain(id);
});

it('docs/dev/interface.md gives a reason if a side has no code for a rule', () => {
  for (const line of PAGE.split('\n').filter((one) => one.startsWith('| **'))) {
    const cells = line.split(' | ');
    expect(cells).toHaveLength(4);
    for (const cell of cells.slice(1, 3)) expect(cell).toMatch(/^`(src|packages)\/|^–, \S/);
  }
});

it('docs/dev/interface.md has a test for each side of each rule, or lists the rule as a gap', () => {
  for (const id of IDS.filter((one) => !GAPS.includes(one))) {
    const { client, sandbox, tests } = TAGS.get(id) ?? { client: [], sandbox: [], tests: [] };
    const shown = {
      somewhere: tests.length > 0,
      client: client.length === 0 || tests.some(showsClient),
      sandbox: sandbox.length === 0 || tests.some(showsSandbox),
    };
    expect([id, shown]).toEqual([id, { somewhere: true, client: true, sandbox: true }]);
  }
});

it('a rule tag names rules and ranges of rules', () => {
  expect(ruleIds('2.1-4, 2.1.2-7..9')).toEqual(['2.1-4', '2.1.2-7', '2.1.2-8', '2.1.2-9']);
});

it('a rule tag is rejected if it names anything else', () => {
  expect(() => ruleIds('2.1')).toThrow('does not name rules');
});
