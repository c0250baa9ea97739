// Makes dist of what the compiler has written to build.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { constants } from 'node:http2';
import { dirname, join, relative, resolve } from 'node:path';
import { build } from 'esbuild';

const { exports, dependencies, optionalDependencies, peerDependencies } = JSON.parse(
  readFileSync('package.json', 'utf8'),
);

/** @type {import('esbuild').BuildOptions} */
const options = {
  allowOverwrite: true,
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node20',
  legalComments: 'inline',
};

/*
 * The parts of catchword become directories of one package: `packages/base` is dist/base, and `src` is dist itself. They are
 * not published alone, so what names one of them gets its path instead.
 */
const PART = /(\bfrom |\bimport |\bimport\()(['"])(?:@catchword\/([\w-]+)|catchword-(client))\/([^'"]+)\2/g;
/** @type {string[]} */
const compiled = [];
for (const part of readdirSync('build')) {
  const [from, to] = part === 'src' ? ['src', 'dist'] : [`packages/${part}/src`, join('dist', part)];
  for (const name of readdirSync(join('build', part), { recursive: true, encoding: 'utf8' })) {
    const [, module, ending] = /^(.*)\.(js|d\.ts)$/.exec(name) ?? [];
    // The compiler leaves what it made of a source that is gone.
    if (!['.ts', '.tsx'].some((one) => existsSync(join(from, `${module}${one}`)))) continue;
    const file = join(to, name);
    const text = readFileSync(join('build', part, name), 'utf8').replace(
      PART,
      (_whole, verb, quote, own, client, named) => {
        const path = relative(dirname(file), join('dist', own ?? client, `${named}.${ending === 'js' ? 'js' : 'ts'}`));
        return `${verb}${quote}${path.startsWith('.') ? path : `./${path}`}${quote}`;
      },
    );
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    compiled.push(file);
  }
}

/* Puts the used parts of drizzle-orm into one file: as packages they are 113 files. */
const LOADER = 'dist/store/schema/drizzle.js';
const LOADS = /export const (\{[^}]+\}) = load\(('[^']+')\);/g;
const parts = [...readFileSync(LOADER, 'utf8').matchAll(LOADS)].map(
  ([, names, from]) => `export ${names} from ${from};`,
);
if (parts.length === 0) throw new Error(`${LOADER} loads nothing`);
const drizzle = await build({
  ...options,
  metafile: true,
  stdin: { contents: parts.join('\n'), resolveDir: '.' },
  outfile: LOADER,
  external: ['better-sqlite3'],
});

/**
 * The files that a file names by a pattern, and those that these name, itself included.
 * @param {string} file
 * @param {RegExp} names
 * @param {Set<string>} found
 */
function reachedFrom(file, names, found = new Set()) {
  if (found.has(file)) return found;
  found.add(file);
  for (const [, name = ''] of readFileSync(file, 'utf8').matchAll(names)) {
    // Declarations name their sources.
    const to = file.endsWith('.d.ts') ? name.replace(/\.tsx?$/, '.d.ts') : name;
    reachedFrom(join(dirname(file), to), names, found);
  }
  return found;
}

const STATIC = /^(?:import|export) [^;'"]*\bfrom '(\.[^']+)';/gm;
const DYNAMIC = /\bimport\('(\.[^']+)'\)/g;

/*
 * Bundles the programs with the packages that only they use, which are devDependencies for that reason, and with those of
 * the library: loading the 380 files of a `sync` one by one took most of its time. Packages with compiled code, or with
 * files that they read, stay outside, and optional ones, because they may be missing. All files of the bundle are in dist
 * itself, so that a path relative to `import.meta.url` means the same in each.
 *
 * esbuild puts modules into one file if the same entries load them: programs, and modules that are imported on demand. A
 * `sync` would load 70 such files. So an entry that loads one of the modules of `status` loads all of them, which makes
 * them one file; and likewise those of `sync`.
 */
const ofStatus = reachedFrom('dist/cli/commands/status-command.js', STATIC);
const ofSync = reachedFrom('dist/cli/commands/sync-command.js', STATIC);
const entries = new Set(['dist/cli/roles/web-worker.js']);
for (const file of compiled.filter((one) => one.endsWith('.js'))) {
  for (const [, name = ''] of readFileSync(file, 'utf8').matchAll(DYNAMIC)) entries.add(join(dirname(file), name));
}

/**
 * The text of a file for the bundle: what it loads when it needs it belongs to the bundle, too.
 * @param {string} file
 */
function textOf(file) {
  const text = readFileSync(file, 'utf8');
  return text.includes('const load = createRequire(import.meta.url);')
    ? text.replaceAll(/\bload\(/g, 'require(')
    : text;
}

/** @param {string} file */
function withShared(file) {
  const text = textOf(file);
  if (!entries.has(file) || ofSync.has(file) || ofStatus.has(file)) return text;
  const loaded = [...reachedFrom(file, STATIC)];
  const own = [
    loaded.some((one) => ofStatus.has(one)) ? 'status' : [],
    loaded.some((one) => ofSync.has(one) && !ofStatus.has(one)) ? 'sync' : [],
  ].flat();
  return (
    own.map((verb) => `import ${JSON.stringify(resolve(`dist/cli/commands/${verb}-command.js`))};\n`).join('') + text
  );
}

/** @type {import('esbuild').Plugin} */
const modules = {
  name: 'modules',
  setup: ({ onResolve, onLoad }) => {
    onResolve({ filter: /^[./]/ }, ({ path, resolveDir, kind }) => {
      const file = relative('.', resolve(resolveDir, path));
      if (!file.startsWith('dist/') || kind === 'entry-point') return undefined;
      // One class of errors, also for the modules of sinks that use the library.
      if (file === 'dist/base/errors.js') return { path: './base/errors.js', external: true };
      return { path: resolve(file), sideEffects: true };
    });
    // commander starts no programs here, and undici speaks HTTP/2 with few servers: to load these takes 4 ms.
    onResolve({ filter: /^node:(http2|child_process)$/ }, ({ path, importer }) =>
      /\/(undici|commander)\//.test(importer) ? { path, namespace: 'late' } : undefined,
    );
    const late = `module.exports = { constants: ${JSON.stringify(constants)}, connect: (...args) => require('node:http2').connect(...args) };`;
    onLoad({ filter: /./, namespace: 'late' }, ({ path }) => ({
      contents: path === 'node:http2' ? late : 'module.exports = {};',
    }));
    // As imports, packages in CommonJS would be searched for the names of their exports, which takes 45 ms for a command with
    // Redis; and node:crypto would load all of its parts: 5 ms.
    onResolve({ filter: /^(better-sqlite3|bullmq|ioredis|node:crypto)$/ }, ({ path, kind }) =>
      kind === 'import-statement' ? { path, namespace: 'required' } : undefined,
    );
    onLoad({ filter: /./, namespace: 'required' }, ({ path }) => ({
      contents: `module.exports = require(${JSON.stringify(path)});`,
    }));
    onLoad({ filter: /\/dist\/.*\.js$/ }, ({ path }) => {
      const file = relative('.', path);
      return file.startsWith('dist/') ? { contents: withShared(file) } : undefined;
    });
  },
};

/** Packages that the library loads as files of their own, and the programs as a part of the bundle. */
const OF_LIBRARY = new Set(['@rgrove/parse-xml', 'ipaddr.js', 'undici', 'zod']);

const programs = {
  ...options,
  outdir: 'dist',
  entryNames: '[name]',
  external: Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies }).filter(
    (name) => !OF_LIBRARY.has(name),
  ),
  // For packages in CommonJS.
  banner: {
    js: "import { createRequire as requireFrom } from 'node:module';\nconst require = requireFrom(import.meta.url);",
  },
  plugins: [modules],
  metafile: true,
};
const large = await build({
  ...programs,
  entryPoints: ['dist/cli.js', 'dist/cli/roles/web-worker.js'],
  splitting: true,
});
// Small ones start faster as a file each.
const SMALL = ['sync/fast/page-worker', 'store/file/copy-program', 'http/search-program'];
const small = await build({ ...programs, entryPoints: SMALL.map((name) => `dist/${name}.js`) });

/* The licences of the packages in the bundle, which ask that copies of the code have them. */
const bundles = [drizzle, large, small];
const inputs = bundles.flatMap(({ metafile }) => Object.keys(metafile.inputs));
const packages = new Set(inputs.flatMap((file) => /^node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file) ?? []));
const sources = [...packages].sort().map((directory) => {
  const file = readdirSync(directory).find((one) => /^licen[cs]e/i.test(one));
  const { license } = JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8'));
  return { directory, license, text: file === undefined ? undefined : readFileSync(join(directory, file), 'utf8') };
});
const licences = sources.map(({ directory, license, text }) => {
  // drizzle-orm only names its licence.
  const found = text ?? sources.find((one) => one.license === license && one.text !== undefined)?.text;
  if (found === undefined) throw new Error(`${directory} has no licence`);
  return `${directory.replace('node_modules/', '')}\n\n${found}`;
});
writeFileSync('dist/bundled-licences.txt', licences.join('\n\n'));

/*
 * Removes what only the bundle or an earlier one needed, now that nothing is missing for a program that runs meanwhile.
 * And the type declarations that the exported entries do not need: they are not for users, and are half of the package.
 */
const NAMES = /(?:\bfrom |\bimport |\bimport\(|\bnew URL\()['"](\.[^'"]+\.[jt]sx?)['"]/g;
const kept = new Set(bundles.flatMap(({ metafile }) => Object.keys(metafile.outputs)));
for (const entry of Object.values(exports)) {
  if (typeof entry !== 'string') for (const file of Object.values(entry)) reachedFrom(join(file), NAMES, kept);
}
for (const name of readdirSync('dist', { recursive: true, encoding: 'utf8' })) {
  const file = join('dist', name);
  if (/^(?!dist\/assets\/).*(\.d\.ts|\.js)$/.test(file) && !kept.has(file)) rmSync(file);
}
