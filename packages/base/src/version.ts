import { existsSync, readFileSync } from 'node:fs';

interface Manifest {
  readonly name: string;
  readonly version: string;
  /** Of the whole package. */
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  /** What only some users need, and all of the package that has the client alone. */
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

/**
 * The nearest directory above this file with the manifest of a package that users install: those of `@catchword` are parts.
 * @throws Error if there is none
 */
function installedPackage(at = new URL('../', import.meta.url)): {
  readonly directory: URL;
  readonly manifest: Manifest;
} {
  const file = new URL('package.json', at);
  const manifest = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Manifest) : undefined;
  if (manifest !== undefined && !manifest.name.startsWith('@catchword/')) return { directory: at, manifest };
  const above = new URL('../', at);
  if (above.href === at.href) throw new Error(`no package.json above ${import.meta.url}`);
  return installedPackage(above);
}

const { directory, manifest } = installedPackage();

/** The directory of this package. */
export const PACKAGE: URL = directory;

/** The version of this package. */
export const VERSION: string = manifest.version;

/** The packages that the library does without, and their versions, as ranges. */
export const OPTIONAL_PACKAGES = { ...manifest.optionalDependencies, ...manifest.peerDependencies };

/** The packages that npm can install with this one; it leaves peers to the user. */
export const OPTIONAL_DEPENDENCIES = manifest.optionalDependencies ?? {};
