import { readFileSync } from 'node:fs';

interface Manifest {
  readonly version: string;
  /** Of the whole package. */
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  /** Of the package that has the client alone. */
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

/** The directory of this package. */
export const PACKAGE = new URL('../', import.meta.url);

const manifest = JSON.parse(readFileSync(new URL('package.json', PACKAGE), 'utf8')) as Manifest;

/** The version of this package. */
export const VERSION = manifest.version;

/** The packages that the library does without, and their versions, as ranges. */
export const OPTIONAL_PACKAGES = { ...manifest.optionalDependencies, ...manifest.peerDependencies };

/** Whether npm can install all of them with this package; it leaves peers to the user. */
export const HAS_OPTIONAL_DEPENDENCIES = manifest.optionalDependencies !== undefined;
