import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { VERBS } from '../../src/cli/verb-table.ts';
import { FAULT_KINDS } from '../../src/sandbox/http/faults.ts';
import { isNamed } from '../../src/settings/config.ts';
import { OPTIONS } from '../../src/settings/option-table.ts';
import { GENERATED_PAGES } from './generated-pages.ts';

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
  'SECURITY.md',
  'packages/client/README.md',
  ...DOCS.map((name) => `docs/${name}`),
].map((path) => ({
  path,
  text: page(path),
}));

/** Every match of `pattern` in the pages, with the page it is on. */
function mentions(pattern: RegExp): { path: string; name: string }[] {
  return PAGES.flatMap(({ path, text }) => [...text.matchAll(pattern)].map(([, name = '']) => ({ path, name })));
}

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

it('the README and the documents link only to files that exist', () => {
  const links = PAGES.flatMap(({ path, text }) =>
    [...text.matchAll(/\]\(((?!https?:)[^)#]+)/g)].map(([, link = '']) => ({
      path,
      to: new URL(link, new URL(path, ROOT)),
    })),
  );
  expect(links.length).toBeGreaterThan(10);
  expect(links.filter(({ to }) => !existsSync(to))).toEqual([]);
  // The package contains docs without docs/dev.
  const packed = links.filter(({ path }) => /^(docs\/(?!dev)|README)/.test(path));
  expect(packed.filter(({ to }) => to.pathname.includes('/docs/dev/'))).toEqual([]);
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

it.each(['docs/sql.md', 'docs/stores/postgres.md'])('the tables of fields in %s have columns', (path) => {
  expect(page(path)).toMatch(/writes this table: \w+ -->\n\n\| column/);
});

it('docs/settings.md says of every setting which form it has', () => {
  for (const { env, schema } of Object.values(OPTIONS)) expect(schema.description, env).toMatch(/^[a-zA-Z]/);
});

it('docs/README.md lists every page of the documents', () => {
  const index = page('docs/README.md');
  const listed = DOCS.filter((name) => !name.startsWith('dev/') && name !== 'README.md');
  expect(listed.length).toBeGreaterThan(30);
  expect(listed.filter((name) => !index.includes(`](${name})`))).toEqual([]);
});
