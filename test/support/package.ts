import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const run = promisify(execFile);

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly optionalDependencies: Readonly<Record<string, string>>;
}

/** Packs the package into a directory. @returns the path of the tarball */
export async function packInto(directory: string): Promise<string> {
  // Without the build script: dist exists, and rebuilding it would disturb other tests.
  const pack = ['pack', '--ignore-scripts', '--silent', '--pack-destination', directory];
  const { stdout } = await run('npm', pack, { cwd: ROOT });
  return join(directory, stdout.trim());
}

/**
 * Installs the packed package and its command into `project`. Links the dependencies of the checkout, because compiling
 * SQLite takes a minute.
 */
export async function installPackage(project: string): Promise<void> {
  const tarball = await packInto(project);
  const installed = join(project, 'node_modules/catchword');
  mkdirSync(installed, { recursive: true });
  await run('tar', ['-xzf', tarball, '--strip-components=1', '-C', installed]);
  const manifest = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as Manifest;
  for (const name of Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies })) {
    const link = join(project, 'node_modules', name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules', name), link);
  }
  mkdirSync(join(project, 'node_modules/.bin'), { recursive: true });
  symlinkSync('../catchword/dist/cli.js', join(project, 'node_modules/.bin/catchword'));
  writeFileSync(join(project, 'package.json'), '{"name":"fresh","private":true,"type":"module"}');
}

/**
 * Keeps the compiled SQLite of this checkout for npm, because compiling it again takes a minute.
 * @param parent of a new directory
 * @returns that directory, for `npm_config_better_sqlite3_local_prebuilds`
 */
export async function keepSqlite(parent: string): Promise<string> {
  const own = join(ROOT, 'node_modules/better-sqlite3');
  const { version } = JSON.parse(readFileSync(join(own, 'package.json'), 'utf8')) as { version: string };
  const { platform, arch, versions } = process;
  const directory = join(parent, 'prebuilt');
  mkdirSync(directory);
  const name = `better-sqlite3-v${version}-node-v${versions.modules}-${platform}-${arch}.tar.gz`;
  await run('tar', ['-czf', join(directory, name), '-C', own, 'build/Release/better_sqlite3.node']);
  return directory;
}
