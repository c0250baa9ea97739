// @module-tag slow
import { readdirSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const DIST = fileURLToPath(new URL('../../dist/', import.meta.url));
/** Packages that the programs have as a part of them, although the library loads them from their own files. */
const OF_LIBRARY = ['@rgrove/parse-xml', 'ipaddr.js', 'undici', 'zod'];
const { dependencies, optionalDependencies } = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
) as Readonly<Record<'dependencies' | 'optionalDependencies', Readonly<Record<string, string>>>>;

/** The files of dist, and the packages, that a file of dist loads, without what it imports on demand. */
function loadedBy(file: string, found = new Set<string>()): Set<string> {
  if (found.has(file)) return found;
  found.add(file);
  if (!file.endsWith('.js')) return found;
  const text = readFileSync(`${DIST}${file}`, 'utf8');
  for (const [, from = ''] of text.matchAll(/^(?:import|(?:import|export)\b[^;"']*\bfrom) ?["']([^"']+)["'];$/gm)) {
    if (!isBuiltin(from)) loadedBy(from.startsWith('.') ? join(dirname(file), from) : from, found);
  }
  return found;
}

it.each(['sync', 'status'])('%s loads few files of dist, and no package that the bundle has', (verb) => {
  const name = readdirSync(DIST).find((one) => new RegExp(`^${verb}-command-[A-Z0-9]{8}\\.js$`).test(one)) ?? '';
  const loaded = [...loadedBy(name), ...loadedBy('cli.js')];
  const files = new Set(loaded.filter((one) => one.endsWith('.js')));
  const packages = new Set(loaded.filter((one) => !one.endsWith('.js')));
  // One for what all verbs share, one for `status`, one for `sync`, zod, commander, esbuild's helpers, and small ones.
  expect(files.size).toBeLessThanOrEqual(13);
  const outside = Object.keys({ ...dependencies, ...optionalDependencies }).filter((one) => !OF_LIBRARY.includes(one));
  expect([...packages].filter((one) => !outside.includes(one))).toEqual([]);
});

it('the bundle has the licences of its packages', () => {
  const text = readFileSync(`${DIST}bundled-licences.txt`, 'utf8');
  for (const name of [
    '@fastify/swagger',
    '@opentelemetry/sdk-metrics',
    'commander',
    'croner',
    'drizzle-orm',
    ...OF_LIBRARY,
  ])
    expect(text).toContain(`${name}\n`);
});
