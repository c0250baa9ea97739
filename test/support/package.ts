import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { madeOnce } from '@catchword/testing/run-directory';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly optionalDependencies: Readonly<Record<string, string>>;
}

/** Packs the package, once for a run of the tests. @returns the path of the tarball */
export function packed(): string {
  const directory = madeOnce('packed', (to) => {
    // Without the build script: dist exists, and rebuilding it would disturb other tests.
    const pack = ['pack', '--ignore-scripts', '--silent', '--pack-destination', to];
    execFileSync('npm', pack, { cwd: ROOT });
  });
  return join(directory, String(readdirSync(directory)[0]));
}

/**
 * Installs the packed package and its command into `project`. Links the dependencies of the checkout, because compiling
 * SQLite takes a minute.
 */
export function installPackage(project: string): void {
  const installed = join(project, 'node_modules/catchword');
  mkdirSync(installed, { recursive: true });
  execFileSync('tar', ['-xzf', packed(), '--strip-components=1', '-C', installed]);
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
 * @returns a directory for `npm_config_better_sqlite3_local_prebuilds`
 */
export function keptSqlite(): string {
  return madeOnce('prebuilt', (directory) => {
    const own = join(ROOT, 'node_modules/better-sqlite3');
    const { version } = JSON.parse(readFileSync(join(own, 'package.json'), 'utf8')) as { version: string };
    const { platform, arch, versions } = process;
    const name = `better-sqlite3-v${version}-node-v${versions.modules}-${platform}-${arch}.tar.gz`;
    execFileSync('tar', ['-czf', join(directory, name), '-C', own, 'build/Release/better_sqlite3.node']);
  });
}
