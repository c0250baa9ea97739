import { readFileSync } from 'node:fs';

interface Manifest {
  readonly version: string;
  /** Of the whole package. */
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  /** What only some users need, and all of the package that has the client alone. */
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

/** The directory of this package. */
export const PACKAGE = new URL('../', import.meta.url);

const manifest = JSON.parse(readFileSync(new URL('package.json', PACKAGE), 'utf8')) as Manifest;

/** The version of this package. */
export const VERSION = manifest.version;

/** The packages that the library does without, and their versions, as ranges. */
export const OPTIONAL_PACKAGES = { ...manifest.optionalDependencies, ...manifest.peerDependencies };

/** The packages that npm can install with this one; it leaves peers to the user. */
export const OPTIONAL_DEPENDENCIES = manifest.optionalDependencies ?? {};
