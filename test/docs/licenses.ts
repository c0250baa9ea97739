import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { GENERATED, tableOf } from './reference.ts';

const LOCK = z.object({
  packages: z.record(
    z.string(),
    z.object({
      license: z.string().optional(),
      dev: z.boolean().optional(),
      link: z.boolean().optional(),
      hasInstallScript: z.boolean().optional(),
    }),
  ),
});

/** A package that is installed with catchword, or is a part of its programs. */
export interface Installed {
  readonly name: string;
  /** An SPDX expression; null if the package names none. */
  readonly license: string | null;
  readonly hasInstallScript: boolean;
}

const read = (file: string): string => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');

/** Reads the lock file and the bundle: which packages users get with catchword, each once. */
export function installedPackages(): readonly Installed[] {
  const lock = LOCK.parse(JSON.parse(read('package-lock.json')));
  const bundled = new Set(read('dist/bundled-licences.txt').split('\n'));
  const byName = new Map<string, Installed>();
  for (const [path, { license = null, dev = false, link = false, hasInstallScript = false }] of Object.entries(
    lock.packages,
  )) {
    const name = path.split('node_modules/').at(-1) ?? '';
    // catchword itself, its own packages, and tools.
    if (!path.startsWith('node_modules/') || link || (dev && !bundled.has(name))) continue;
    byName.set(`${name} ${license}`, { name, license, hasInstallScript });
  }
  return [...byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

export function licensesPage(): string {
  const names = new Map<string, string[]>();
  for (const { name, license } of installedPackages()) {
    const key = license ?? 'not named in the lock file';
    names.set(key, [...(names.get(key) ?? []), `\`${name}\``]);
  }
  const rows = [...names].map(([license, packages]) => [license, packages.join(', ')]);
  return `${[
    '# Licences',
    GENERATED,
    'catchword has the MIT licence. These packages are installed with it or are a part of its programs, each under the licence ' +
      'that it names. `dist/bundled-licences.txt` has the texts for the programs.',
    tableOf(
      ['licence', 'packages'],
      rows.sort(([a = ''], [b = '']) => (a < b ? -1 : 1)),
    ),
  ].join('\n\n')}\n`;
}
