import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PACKAGES, SOURCES, sourcePath } from './sources.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PROGRAM = join(ROOT, 'dist/cli.js');
/** Says what dist was made from. The package leaves it out. */
const MADE_FROM = join(ROOT, 'dist/.made-from');
const SETTINGS = [
  'build.mjs',
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  'tsconfig.package.json',
  'tsconfig.build.json',
];
const ASSETS = 'src/http/pages/assets';

/** Identifies the sources and the program in dist, also if something else has written it since. */
function sourcesOfDist(): string {
  const hash = createHash('sha256');
  const assets = readdirSync(join(ROOT, ASSETS)).map((name) => join(ASSETS, name));
  const configs = PACKAGES.map((name) => `packages/${name}/tsconfig.json`);
  for (const name of [...SETTINGS, ...configs, ...assets, ...SOURCES.map(sourcePath).sort()]) {
    const path = join(ROOT, name);
    if (statSync(path).isFile()) hash.update(`${name}\0`).update(readFileSync(path));
  }
  // In seconds, which every copy of a file keeps.
  if (existsSync(PROGRAM)) hash.update(String(Math.floor(statSync(PROGRAM).mtimeMs / 1000)));
  return hash.digest('hex');
}

/**
 * Transpiles the sources to dist, because tests run the program that users run, unless dist was made from these sources by
 * an earlier run. The compiler's checks are those of `npm run check`, and take twice as long.
 */
export default function build(): void {
  if (existsSync(MADE_FROM) && readFileSync(MADE_FROM, 'utf8') === sourcesOfDist()) return;
  execFileSync('npm', ['run', '--silent', 'transpile'], { cwd: ROOT, stdio: ['ignore', 'inherit', 'inherit'] });
  writeFileSync(MADE_FROM, sourcesOfDist());
}
