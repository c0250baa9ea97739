import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** The packages that are compiled: `packages/testing` is not, because only tests load it. */
export const PACKAGES: readonly string[] = readdirSync(join(ROOT, 'packages')).filter((name) =>
  existsSync(join(ROOT, 'packages', name, 'tsconfig.json')),
);

/** The directories with sources, by the room that each is: none for `src`, whose directories are rooms. */
const PLACES = new Map([['', 'src'], ...PACKAGES.map((name) => [name, `packages/${name}/src`] as const)]);

/** The source files, by room and name: `sync/apply-page.ts` is in src, and `base/errors.ts` in packages/base/src. */
export const SOURCES: readonly string[] = [...PLACES].flatMap(([room, place]) =>
  readdirSync(join(ROOT, place), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => join(room, name)),
);

/** The paths from the root of what the packages and the whole test with, sorted. */
export const TEST_CODE: readonly string[] = ['test', ...PACKAGES.map((name) => `packages/${name}/test`)]
  .filter((place) => existsSync(join(ROOT, place)))
  .flatMap((place) =>
    readdirSync(join(ROOT, place), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => join(place, name)),
  )
  .sort();

/** Those of them that vitest runs. */
export const TEST_FILES: readonly string[] = TEST_CODE.filter((name) => name.endsWith('.test.ts'));

/** The path of a source file from the root of the project. */
export function sourcePath(source: string): string {
  const [room = '', ...rest] = source.split('/');
  const place = PLACES.get(room);
  return place === undefined ? `src/${source}` : `${place}/${rest.join('/')}`;
}

export function sourceText(source: string): string {
  return readFileSync(join(ROOT, sourcePath(source)), 'utf8');
}

/** The source file that an import names; undefined for a package of others, and for a module of Node.js. */
export function importedSource(source: string, from: string): string | undefined {
  const [, own, module] = /^(?:@catchword\/([\w-]+)|catchword-client)\/(.+)$/.exec(from) ?? [];
  if (module !== undefined) return `${own ?? 'client'}/${module}.ts`;
  return from.startsWith('.') ? relative(ROOT, resolve(ROOT, dirname(source), from)) : undefined;
}
