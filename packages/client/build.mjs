// Copies the files that the exports of this package load, and their types, from the dist of the whole project.
import { cpSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';

const HERE = import.meta.dirname;
const ROOT = join(HERE, '../..');
const { exports } = JSON.parse(readFileSync(join(HERE, 'package.json'), 'utf8'));
/** @type {Set<string>} */
const copied = new Set();

/** @param {string} file */
function copy(file) {
  if (copied.has(file)) return;
  copied.add(file);
  cpSync(join(ROOT, file), join(HERE, file));
  const text = readFileSync(join(ROOT, file), 'utf8');
  for (const [, from] of text.matchAll(/(?:\bfrom |\bimport[ (])['"](\.[^'"]+)['"]/g)) {
    // Declarations name their sources.
    copy(join(dirname(file), from.replace(/\.tsx?$/, '.d.ts')));
  }
}

// A file that is not needed any more must not be published.
rmSync(join(HERE, 'dist'), { recursive: true, force: true });
for (const target of Object.values(exports))
  if (typeof target !== 'string') for (const file of Object.values(target)) copy(file);
// npm publishes a licence only from the directory of its package.
cpSync(join(ROOT, 'LICENSE'), join(HERE, 'LICENSE'));
