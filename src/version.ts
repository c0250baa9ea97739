import { readFileSync } from 'node:fs';

interface Manifest {
  readonly version: string;
  readonly optionalDependencies: Readonly<Record<string, string>>;
}

const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as Manifest;

/** The version of this package. */
export const VERSION = manifest.version;

/** The packages that the library does without, and their versions, as ranges. */
export const OPTIONAL_PACKAGES = manifest.optionalDependencies;
