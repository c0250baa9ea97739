import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { installedPackages } from './licenses.ts';

/** Licences that allow any use, and ask at most to be named. */
const PERMISSIVE = new Set(['MIT', 'MIT-0', 'ISC', '0BSD', 'BSD-2-Clause', 'BSD-3-Clause', 'Apache-2.0', 'Unlicense']);

/** Its own package.json says MIT. */
const WITHOUT_LICENSE = ['msgpackr-extract'];

it('packages that are installed with catchword have licences that allow any use', () => {
  const packages = installedPackages();
  expect(packages.length).toBeGreaterThan(100);
  const isPermissive = (license: string): boolean =>
    license
      .replace(/^\((.*)\)$/, '$1')
      .split(' OR ')
      .some((one) => PERMISSIVE.has(one));
  const others = packages.filter(({ license }) => license === null || !isPermissive(license));
  expect(others.map(({ name }) => name)).toEqual(WITHOUT_LICENSE);
});

it('only better-sqlite3 runs a script when it is installed', () => {
  const { allowScripts } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  const withScripts = installedPackages().filter(({ hasInstallScript }) => hasInstallScript);
  const allowed = withScripts.filter(({ name }) => allowScripts[name]).map(({ name }) => name);
  expect(allowed).toEqual(['better-sqlite3']);
  expect(withScripts.filter(({ name }) => allowScripts[name] === undefined)).toEqual([]);
});
