import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { runHere } from './support/in-process.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const PLACES = [
  'src',
  'packages',
  'test',
  'bench',
  'examples',
  'docs',
  'README.md',
  'CHANGELOG.md',
  'ecosystem.config.cjs',
  '.ci/run',
  'ops',
  'Dockerfile',
];
const IS_TEXT = /(\.(tsx?|m?js|cjs|css|md|ya?ml|service)|\/run)$/;

/** Phrases that mark unclear English. The brackets keep this list from matching itself. */
const PHRASES = [
  '[i]s no',
  '[a]re no',
  'that is [n]one',
  '[a]new',
  '[b]eside',
  'told [o]f',
  'is [t]old',
  'is [s]aid',
  'leave [a]way',
  'in [p]lace of',
  '[n]obody',
  '[w]hoever',
  'what is [s]ent',
  'what is [w]rong',
  'what is [t]old',
  'what is [t]here',
  'for [c]omfort',
  '[m]end\\w*',
];

/** White space, also a line break within a comment. */
const SPACE = String.raw`\s+(?:(?:\*|//|#)\s+)?`;
const UNCLEAR = new RegExp(`\\b(?:${PHRASES.map((phrase) => phrase.replaceAll(' ', SPACE)).join('|')})\\b`, 'gi');

/** @returns the unclear phrases in a text, each with its line */
function unclearIn(text: string): string[] {
  return [...text.matchAll(UNCLEAR)].map(({ 0: phrase, index }) => {
    const line = text.slice(0, index).split('\n').length;
    return `${line}: ${phrase.replace(/\s+/g, ' ')}`;
  });
}

function filesIn(place: string): string[] {
  const path = join(ROOT, place);
  if (statSync(path).isFile()) return [place];
  const names = readdirSync(path, { recursive: true, encoding: 'utf8' });
  return names
    .map((name) => join(place, name))
    .filter((name) => IS_TEXT.test(name) && !/\/(dist|node_modules)\//.test(name));
}

it('unclearIn finds unclear phrases, also across the lines of a comment', () => {
  const phrase = ['in', 'place', 'of'];
  expect(unclearIn(`a\n${phrase.join(' ')}`)).toEqual([`2: ${phrase.join(' ')}`]);
  expect(unclearIn(`/** ${phrase.join('\n * ')} */`)).toHaveLength(1);
  expect(unclearIn('recommended')).toEqual([]);
});

it('the sources, the tests and the documents have no unclear phrase', () => {
  const files = PLACES.flatMap(filesIn);
  expect(files.length).toBeGreaterThan(300);
  const found = files.flatMap((file) =>
    unclearIn(readFileSync(join(ROOT, file), 'utf8')).map((phrase) => `${file}:${phrase}`),
  );
  expect(found).toEqual([]);
});

it('the help of the program has no unclear phrase; docs/commands.md has the help of each command', async () => {
  const { stdout, code } = await runHere(['--help'], {}, ROOT);
  expect(code).toBe(0);
  expect(unclearIn(stdout)).toEqual([]);
});
