import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const ROOT = new URL('../', import.meta.url);
const PAGE = readFileSync(new URL('docs/interface.md', ROOT), 'utf8');

/** Of the interface document; 4 has no rules but those of its parts. */
const SECTIONS = [
  '1',
  '2.1',
  '2.1.1',
  '2.1.2',
  '2.1.3',
  '2.2',
  '2.3',
  '2.4',
  '2.5',
  '3',
  '4.1',
  '4.2',
  '4.3',
  '4.4',
  '4.5',
  '5',
  '6',
  '7',
  '8',
  '9',
];

interface Rule {
  readonly id: string;
  readonly client: readonly string[];
  readonly sandbox: readonly string[];
  /** `test/… › name` */
  readonly tests: readonly string[];
}

function quoted(cell: string | undefined, start: string): string[] {
  return [...(cell ?? '').matchAll(/`([^`]+)`/g)].map(([, text = '']) => text).filter((text) => text.startsWith(start));
}

function rowsOf(text: string): string[][] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
}

function sectionOf(title: string): string {
  return PAGE.split(`\n## ${title}\n`)[1]?.split('\n## ')[0] ?? '';
}

const RULES: readonly Rule[] = rowsOf(PAGE).flatMap(([rule = '', client, sandbox, test]) => {
  const [, id] = /^\*\*([\d.]+-\d+)\*\* ./.exec(rule) ?? [];
  if (id === undefined) return [];
  return [{ id, client: quoted(client, 'src/'), sandbox: quoted(sandbox, 'src/'), tests: quoted(test, 'test/') }];
});

const GAPS = [...sectionOf('Gaps').matchAll(/^- \*\*([\d.]+-\d+)\*\*: .+\.$/gm)].map(([, id = '']) => id);

function sourceOf(test: string): string {
  return readFileSync(new URL(test.split(' › ')[0] ?? '', ROOT), 'utf8');
}

/** Tests of commands and of syncing start the sandbox, and so show both sides. */
function showsSandbox(test: string): boolean {
  return test.startsWith('test/sandbox/') || sourceOf(test).includes('startSandbox');
}

describe('the page of the interface', () => {
  it('has every section, and numbers its rules one after the other', () => {
    const titles = [...PAGE.matchAll(/^## ([\d.]+) \S/gm)].map(([, section]) => section);
    expect(titles).toEqual(SECTIONS);
    const counts = new Map(SECTIONS.map((section) => [section, 0]));
    for (const { id } of RULES) {
      const [section = '', number] = id.split('-');
      counts.set(section, (counts.get(section) ?? 0) + 1);
      expect(id).toBe(`${section}-${counts.get(section)}`);
      expect(number).not.toBe('0');
    }
    expect([...counts.keys()]).toEqual(SECTIONS);
    for (const [section, count] of counts) expect([section, count > 0]).toEqual([section, true]);
  });

  it('has four cells in each row, none of them empty', () => {
    for (const cells of rowsOf(PAGE)) {
      expect(cells).toHaveLength(4);
      expect(cells).not.toContain('');
    }
    for (const { id, client, sandbox } of RULES) {
      const [, clientCell = '', sandboxCell = ''] = rowsOf(PAGE).find(([rule]) => rule?.startsWith(`**${id}**`)) ?? [];
      // A file, or why there is none.
      expect([id, client.length > 0 || /^–, \S/.test(clientCell)]).toEqual([id, true]);
      expect([id, sandbox.length > 0 || /^–, \S/.test(sandboxCell)]).toEqual([id, true]);
    }
  });

  it('names files that exist, those of the sandbox among the sandbox', () => {
    for (const { id, client, sandbox } of RULES) {
      for (const path of [...client, ...sandbox]) {
        expect([id, path, existsSync(new URL(path, ROOT))]).toEqual([id, path, true]);
      }
      for (const path of client) expect(path).not.toMatch(/^src\/sandbox\//);
      for (const path of sandbox) expect(path).toMatch(/^src\/sandbox\//);
    }
  });

  it('names tests as they are called in their files', () => {
    for (const { id, tests } of RULES) {
      for (const test of tests) {
        const [, ...names] = test.split(' › ');
        const source = sourceOf(test);
        expect([id, test, names.length > 0]).toEqual([id, test, true]);
        for (const name of names) {
          const found = ["'", '"', '`'].some((quote) => source.includes(`${quote}${name}${quote}`));
          expect([id, test, found]).toEqual([id, test, true]);
        }
      }
    }
  });

  it('has a test for each side of each rule, or a gap', () => {
    const known = RULES.map(({ id }) => id);
    for (const id of GAPS) expect(known).toContain(id);
    expect(new Set(GAPS).size).toBe(GAPS.length);
    for (const { id, client, sandbox, tests } of RULES) {
      if (GAPS.includes(id)) continue;
      const isShown = {
        somewhere: tests.length > 0,
        client: client.length === 0 || tests.some((test) => !test.startsWith('test/sandbox/')),
        sandbox: sandbox.length === 0 || tests.some(showsSandbox),
      };
      expect([id, isShown]).toEqual([id, { somewhere: true, client: true, sandbox: true }]);
    }
  });

  it('counts right', () => {
    const tests = new Set(RULES.flatMap((rule) => rule.tests));
    expect(sectionOf('Count')).toContain(`\n${RULES.length} rules, ${tests.size} tests; gaps: ${GAPS.length}.\n`);
  });
});
