import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

interface Manifest {
  readonly name: string;
  readonly bin?: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, string | { readonly types: string; readonly default: string }>>;
}

const DECLARED = /^export (?:declare )?(?:abstract )?(?:interface|type|class|function|const|let) (\w+)/gm;
const LISTED = /^export (?:type )?\{([^}]*)\}/gm;

/** The names that a file of declarations exports, types included. */
function namesIn(text: string): string[] {
  const listed = [...text.matchAll(LISTED)].flatMap(([, names = '']) => names.split(','));
  const renamed = listed.map((name) => /(\w+)\s*$/.exec(name)?.[1] ?? '');
  return [...[...text.matchAll(DECLARED)].map(([, name = '']) => name), ...renamed].filter((name) => name !== '');
}

/**
 * What users of a package may name: its programs, and for each of its exports the values and types.
 * @param directory of the package, whose dist is that of `root`
 */
export async function exportedNames(directory: string, root: string): Promise<Record<string, readonly string[]>> {
  const { name, bin = {}, exports } = JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8')) as Manifest;
  const found: Record<string, readonly string[]> = { [`${name}: programs`]: Object.keys(bin).sort() };
  for (const [path, target] of Object.entries(exports)) {
    // A path to one file; and the sources, which are not in the package.
    if (typeof target === 'string') {
      if (!path.includes('*')) found[`${name}${path.slice(1)}`] = [];
      continue;
    }
    const module = (await import(pathToFileURL(join(root, target.default)).href)) as object;
    const types = namesIn(readFileSync(join(root, target.types), 'utf8'));
    found[`${name}${path.slice(1)}`] = [...new Set([...Object.keys(module), ...types])].sort();
  }
  return found;
}
