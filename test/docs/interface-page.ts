import { readFileSync } from 'node:fs';
import { FIELDS } from '../service/fields.ts';
import { TABLES } from '../service/tables.ts';
import { SOURCES, sourcePath, sourceText, TEST_FILES } from '../support/sources.ts';

/*
 * docs/dev/interface.md has a row for each rule of the service's interface. The text of a rule is written by hand; its columns
 * are generated from tags at the code (`@rule 2.1-4, 2.1-7..9`): in a docstring, or above a test. The tables of
 * test/service name the rules of each row, which shows them on both sides, unless its place ends with one of ONLY.
 */

const ROOT = new URL('../../', import.meta.url);

/** The ends of places that show one side. */
export const ONLY = { sandbox: ' (sandbox)', client: ' (client)' };

/** Where a rule is implemented and shown. */
export interface RulePlaces {
  /** Source files, but those of the sandbox. */
  readonly client: string[];
  readonly sandbox: string[];
  /** `test/… › name` */
  readonly tests: string[];
}

/** The ids of a tag: `2.1-4, 2.1-7..9` names four rules. */
export function ruleIds(tag: string): string[] {
  return tag.split(',').flatMap((part) => {
    const [, section = '', first = '', last = first] = /^\s*([\d.]+)-(\d+)(?:\.\.(\d+))?\s*$/.exec(part) ?? [];
    if (section === '') throw new Error(`"@rule ${tag}" does not name rules such as 2.1-4 or 2.1-4..7`);
    const numbers = Array.from({ length: Number(last) - Number(first) + 1 }, (_, index) => Number(first) + index);
    return numbers.map((number) => `${section}-${number}`);
  });
}

/** The name of the test or group that follows a tag. */
function nameAfter(text: string, path: string): string {
  const [, , direct] = /^\s*(?:it|describe)(?:\.\w+)*\(\s*(['"`])(.*?)\1/.exec(text) ?? [];
  const [, , each] = /\)\(\s*(['"`])(.*?)\1/.exec(text) ?? [];
  const name = direct ?? each;
  if (name === undefined) throw new Error(`${path}: a @rule tag is not above a test`);
  return name;
}

/** Reads all tags. @returns by rule id */
export function readRuleTags(): ReadonlyMap<string, RulePlaces> {
  const places = new Map<string, RulePlaces>();
  const placesOf = (id: string): RulePlaces => {
    const known = places.get(id) ?? { client: [], sandbox: [], tests: [] };
    places.set(id, known);
    return known;
  };
  const add = (list: string[], place: string): void => {
    if (!list.includes(place)) list.push(place);
  };
  for (const source of SOURCES) {
    const path = sourcePath(source);
    for (const [, tag = ''] of sourceText(source).matchAll(/@rule ([\d.,\s-]*\d)/g)) {
      for (const id of ruleIds(tag)) {
        const { client, sandbox } = placesOf(id);
        add(source.startsWith('sandbox/') ? sandbox : client, path);
      }
    }
  }
  for (const path of TEST_FILES) {
    const text = readFileSync(new URL(path, ROOT), 'utf8');
    for (const match of text.matchAll(/^ *\/\/ @rule (.+)\n/gm)) {
      const name = nameAfter(text.slice(match.index + match[0].length), path);
      for (const id of ruleIds(match[1] ?? '')) add(placesOf(id).tests, `${path} › ${name}`);
    }
  }
  for (const [name, rows] of Object.entries(TABLES)) {
    for (const { rules, says, only } of rows) {
      const place = `test/service/${name}.ts › ${says}${only === null ? '' : ONLY[only]}`;
      for (const id of ruleIds(rules)) add(placesOf(id).tests, place);
    }
  }
  for (const { rules, names } of FIELDS) {
    for (const id of ruleIds(rules)) add(placesOf(id).tests, `test/service/fields.ts › ${names}`);
  }
  return places;
}

const ROW = /^\| \*\*([\d.]+-\d+)\*\* /;

/** The ids of the rows of a page, in their order. */
export function rowIds(page: string): string[] {
  return page.split('\n').flatMap((line) => ROW.exec(line)?.[1] ?? []);
}

/** A cell: where the rule is, or the reason, written by hand, why it is nowhere (`–, the service does it`). */
function cellOf(places: readonly string[], written: string): string {
  if (places.length === 0) return written.startsWith('–') ? written : '–';
  return places.map((place) => `\`${place}\``).join(places[0]?.includes(' › ') ? '<br>' : ', ');
}

/** The page with its columns as the tags say. */
export function renderInterface(page: string, tags: ReadonlyMap<string, RulePlaces>): string {
  const count = rowIds(page).length;
  const tests = new Set([...tags.values()].flatMap((places) => places.tests)).size;
  const lines = page.split('\n').map((line) => {
    const id = ROW.exec(line)?.[1];
    if (id === undefined) return line.replace(/^\d+ rules, \d+ tests;/, `${count} rules, ${tests} tests;`);
    const [rule = '', client = '', sandbox = ''] = line.split(' | ').map((cell) => cell.replace(/^\| /, ''));
    const places = tags.get(id) ?? { client: [], sandbox: [], tests: [] };
    return `| ${rule} | ${cellOf(places.client, client)} | ${cellOf(places.sandbox, sandbox)} | ${cellOf(places.tests, '–')} |`;
  });
  return lines.join('\n');
}
