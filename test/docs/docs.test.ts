import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { FAULT_KINDS } from '@catchword/sandbox/http/faults';
import { isNamed } from '@catchword/settings/config';
import { OPTIONS } from '@catchword/settings/option-table';
import type { SinkFailure } from '@catchword/sink-kit/sink';
import { expect, it } from 'vitest';
import { VERBS } from '../../src/cli/verb-table.ts';
import { SOURCES, sourceText } from '../support/sources.ts';
import { GENERATED_PAGES } from './generated-pages.ts';
import { brokenLinks } from './links.ts';

const ROOT = new URL('../../', import.meta.url);

function page(path: string): string {
  return readFileSync(new URL(path, ROOT), 'utf8');
}

const DOCS = readdirSync(new URL('docs', ROOT), { recursive: true, encoding: 'utf8' }).filter((name) =>
  name.endsWith('.md'),
);
const PAGES = [
  'README.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'SECURITY.md',
  'packages/client/README.md',
  ...DOCS.map((name) => `docs/${name}`),
].map((path) => ({
  path,
  text: page(path),
}));

/** The compiler says if one is missing. */
const FAILURES: Readonly<Record<SinkFailure, true>> = {
  unavailable: true,
  refused: true,
  gone: true,
  misconfigured: true,
};

/** Every match of `pattern` in the pages, with the page it is on. */
function mentions(pattern: RegExp): { path: string; name: string }[] {
  return PAGES.flatMap(({ path, text }) => [...text.matchAll(pattern)].map(([, name = '']) => ({ path, name })));
}

it('no paragraph of the README and the documents has more than 90 words', () => {
  // One entry of the changelog is a line.
  const long = PAGES.filter(({ path }) => path !== 'CHANGELOG.md').flatMap(({ path, text }) => {
    const prose = text.replace(/^ *```[\s\S]*?^ *```$/gm, '').replace(/^\|.*$/gm, '');
    const paragraphs = prose.split(/\n\s*\n|\n(?=\s*(?:-|\d+\.) )/);
    return paragraphs.filter((one) => one.split(/\s+/).length > 91).map((one) => `${path}: ${one.slice(0, 60)}`);
  });
  expect(long).toEqual([]);
});

it('the README and the documents name only commands that exist', () => {
  const named = mentions(/npx catchword ([a-z]+)/g);
  expect(named.length).toBeGreaterThan(10);
  expect(named.filter(({ name }) => !VERBS.some((verb) => verb.name === name))).toEqual([]);
});

it('the README and the documents name only settings that exist', () => {
  const known = Object.values(OPTIONS).flatMap(({ env, secret }) => (secret ? [env, `${env}_FILE`] : [env]));
  const ofTests = ['CATCHWORD_TEST_SEED', 'CATCHWORD_TEST_RUNS', 'CATCHWORD_SCREENSHOTS', 'CATCHWORD_PLAIN'];
  const named = mentions(/\b(CATCHWORD_[A-Z0-9_]*[A-Z0-9])\b(?!_?<)/g);
  expect(named.length).toBeGreaterThan(40);
  expect(named.filter(({ name }) => ![...known, ...ofTests].includes(name) && !isNamed(name))).toEqual([]);
});

it('the README and the documents link only to files and headings that exist', () => {
  const { links, broken } = brokenLinks(
    fileURLToPath(ROOT),
    PAGES.map(({ path }) => path),
  );
  expect(links).toBeGreaterThan(100);
  expect(broken).toEqual([]);
});

it('the README and the documents name only files that exist', () => {
  const named = mentions(/`((?:src|test|docs|bench|drizzle|examples|packages)\/[\w./-]+)`/g);
  expect(named.length).toBeGreaterThan(30);
  expect(named.filter(({ name }) => !existsSync(new URL(name, ROOT)))).toEqual([]);
});

it('the README and the documents name every fault of the sandbox', () => {
  const text = PAGES.map((one) => one.text).join('\n');
  for (const kind of FAULT_KINDS) expect(text).toContain(`\`${kind}\``);
});

it('the README has at most 8 kB', () => {
  expect(Buffer.byteLength(page('README.md'))).toBeLessThanOrEqual(8_000);
});

it.each(Object.entries(GENERATED_PAGES))('%s is what `npm run docs` writes', async (path, write) => {
  expect(page(path)).toBe(await write(page(path)));
});

it.each(['docs/sql.md', 'docs/stores/mysql.md', 'docs/stores/postgres.md'])(
  'the tables of fields in %s have columns',
  (path) => {
    expect(page(path)).toMatch(/writes this table: \w+ -->\n\n\| column/);
  },
);

it('docs/settings.md says of every setting which form it has', () => {
  for (const { env, schema } of Object.values(OPTIONS)) expect(schema.description, env).toMatch(/^[a-zA-Z]/);
});

it('docs/README.md lists every page of the documents', () => {
  const index = page('docs/README.md');
  const listed = DOCS.filter((name) => !name.startsWith('dev/') && name !== 'README.md');
  expect(listed.length).toBeGreaterThan(30);
  expect(listed.filter((name) => !index.includes(`](${name})`))).toEqual([]);
});

it('docs/log.md has every code of log lines about sinks', () => {
  const named = SOURCES.flatMap((source) =>
    [...sourceText(source).matchAll(/'(SINK_[A-Z_]+)'/g)].map(([, code]) => code),
  );
  const codes = new Set([...named, ...Object.keys(FAILURES).map((failure) => `SINK_${failure.toUpperCase()}`)]);
  expect(codes.size).toBeGreaterThan(6);
  expect([...codes].filter((code) => !page('docs/log.md').includes(`\`${code}\``))).toEqual([]);
});
