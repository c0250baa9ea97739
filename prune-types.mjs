// Removes the type declarations in dist that the exported entries do not need: they are not for users, and are half of the
// package.
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';

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
