// Completes what the compiler has written to dist.
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { build } from 'esbuild';

/*
 * Puts the used parts of drizzle-orm into one file. Each command loads them: as packages they are 113 files and take 0.1 s,
 * a third of `status`; in one file they take a fifth of that.
 */
const LOADER = 'dist/store/drizzle.js';
const LOADS = /export const (\{[^}]+\}) = load\(('[^']+')\);/g;
const parts = [...readFileSync(LOADER, 'utf8').matchAll(LOADS)].map(
  ([, names, from]) => `export ${names} from ${from};`,
);
if (parts.length === 0) throw new Error(`${LOADER} loads nothing`);
await build({
  stdin: { contents: parts.join('\n'), resolveDir: '.' },
  outfile: LOADER,
  allowOverwrite: true,
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node20',
  external: ['better-sqlite3'],
  legalComments: 'inline',
});

/* Removes the type declarations that the exported entries do not need: they are not for users, and are half of the package. */
const { exports } = JSON.parse(readFileSync('package.json', 'utf8'));
/** @type {Set<string>} */
const needed = new Set();

/** @param {string} file */
function keep(file) {
  if (needed.has(file)) return;
  needed.add(file);
  const text = readFileSync(file, 'utf8');
  for (const [, from] of text.matchAll(/(?:\bfrom |\bimport\()['"](\.[^'"]+)['"]/g)) {
    keep(join(dirname(file), from.replace(/\.tsx?$/, '.d.ts')));
  }
}

for (const { types } of Object.values(exports)) if (types !== undefined) keep(join(types));
for (const name of readdirSync('dist', { recursive: true, encoding: 'utf8' })) {
  const file = join('dist', name);
  if (file.endsWith('.d.ts') && !needed.has(file)) rmSync(file);
}
