// @module-tag slow
import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, expect, it } from 'vitest';
import { serveHttp } from '../support/listen.ts';
import { keepSqlite, packInto } from '../support/package.ts';
import { directoryOfFile, installFirst } from './fresh-project.ts';

/* Installs the packed package from the registry, as its users do. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const run = promisify(execFile);

const project = directoryOfFile('install');
const MANIFEST = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  readonly exports: Readonly<Record<string, string | { readonly types: string }>>;
  readonly dependencies: Readonly<Record<string, string>>;
};
let tarball = '';
let prebuilt = '';

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program in the project. */
async function inProject(program: string, args: readonly string[], env: Record<string, string> = {}): Promise<Ended> {
  try {
    return { code: 0, ...(await run(program, args, { cwd: project, env: { ...process.env, NO_COLOR: '1', ...env } })) };
  } catch (error) {
    return error as Ended;
  }
}

async function install(...options: string[]): Promise<string> {
  const npm = ['install', '--no-audit', '--no-fund', ...options, tarball];
  const { code, stderr } = await inProject('npm', npm, { npm_config_better_sqlite3_local_prebuilds: prebuilt });
  expect(stderr).not.toMatch(/npm (error|ERR)/);
  expect(code).toBe(0);
  return stderr;
}

function installed(): string[] {
  const directory = join(project, 'node_modules');
  const names = readdirSync(directory).filter((name) => !name.startsWith('.'));
  return names.flatMap((name) =>
    name.startsWith('@') ? readdirSync(join(directory, name)).map((one) => `${name}/${one}`) : [name],
  );
}

beforeAll(async () => {
  writeFileSync(join(project, 'package.json'), '{"name":"fresh","private":true,"type":"module"}');
  tarball = await packInto(project);
  prebuilt = await keepSqlite(project);
});

installFirst('the package', () => install('--omit=optional'));

it('npm install --omit=optional installs only what the client needs', () => {
  expect(installed().sort()).toEqual(['catchword', ...Object.keys(MANIFEST.dependencies)].sort());
});

it('npm install --omit=optional gives a client that works, and names what a token store needs', async () => {
  const url = await serveHttp((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end('{"vbid":"A","title":"One"}');
  });
  const script = `import { createClient } from 'catchword';
      const given = { baseUrl: process.argv[2], apiKey: 'KEY', accessToken: 'token', reference: 'one', rateLimit: 'off' };
      const client = createClient(given);
      console.log((await client.catalog.product('A')).title);
      await client.close();
      try {
        createClient({ ...given, tokenStore: 'token' });
      } catch ({ code, message, hint }) {
        console.log(code, message, hint);
      }`;
  writeFileSync(join(project, 'client.js'), script);
  const { stdout, stderr } = await inProject(process.execPath, ['client.js', url]);
  expect(stderr).toBe('');
  expect(stdout.split('\n')).toEqual([
    'One',
    expect.stringMatching(/^PACKAGE_MISSING .*better-sqlite3.*npm install/),
    '',
  ]);
});

it('npm install --omit=optional has types that compile without the optional packages, for each export', async () => {
  const entries = Object.entries(MANIFEST.exports).filter(([, target]) => typeof target !== 'string');
  expect(entries).toHaveLength(6);
  const lines = entries.map(
    ([path], index) => `import * as e${index} from 'catchword${path.slice(1)}'; export { e${index} };`,
  );
  writeFileSync(join(project, 'types.ts'), lines.join('\n'));
  const options = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2022', '--types', ''];
  const ended = await inProject(process.execPath, [
    join(ROOT, 'node_modules/typescript/bin/tsc'),
    ...options,
    'types.ts',
  ]);
  expect(ended).toMatchObject({ code: 0, stdout: '' });
});

it.each([['demo'], ['daemon'], ['sync'], ['licenses'], ['sandbox'], ['completion', 'bash']])(
  'npm install --omit=optional lets %s fail with one error that names the missing package',
  async (...args) => {
    const { code, stdout, stderr } = await inProject('npx', ['catchword', ...args]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(
      /^error the package [\w./@-]+ is not installed \[PACKAGE_MISSING\]\nhint {2}.*npm install .*\n$/m,
    );
    expect(stderr).not.toMatch(/^ +at |ERR_MODULE_NOT_FOUND/m);
  },
);

it('npm install --omit=optional lets the program print its version and its commands', async () => {
  for (const option of ['--version', '--help'])
    expect(await inProject('npx', ['catchword', option])).toMatchObject({ code: 0 });
});

it('npm install has no script of the package to run, or to warn about', () => {
  const text = readFileSync(join(project, 'node_modules/catchword/package.json'), 'utf8');
  const { scripts } = JSON.parse(text) as { readonly scripts: Readonly<Record<string, string>> };
  for (const name of ['preinstall', 'install', 'postinstall', 'prepare']) expect(scripts).not.toHaveProperty(name);
});

it('npm install without install scripts, as of npm 12, lets catchword say how to compile SQLite', async () => {
  await install('--include=optional', '--ignore-scripts');
  const { code, stderr } = await inProject('npx', ['catchword', 'demo']);
  expect(code).toBe(2);
  expect(stderr).toMatch(/^error the package better-sqlite3 is not compiled \[PACKAGE_MISSING\]$/m);
  const [, command = ''] = /^hint .* run it: (npm pkg set .+)\.$/m.exec(stderr) ?? [];
  const env = { npm_config_better_sqlite3_local_prebuilds: prebuilt };
  expect(await inProject('sh', ['-ec', command], env)).toMatchObject({ code: 0 });
  expect(await inProject('npx', ['catchword', 'demo', '--json'])).toMatchObject({ code: 0 });
});

it('npm install adds everything that catchword can use, for this version of Node.js, and `npx catchword demo` runs', async () => {
  const stderr = await install('--include=optional');
  expect(stderr).not.toMatch(/EBADENGINE|deprecated|ERESOLVE/);
  const { code, stdout } = await inProject('npx', ['catchword', 'demo', '--json']);
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toBeTypeOf('object');
  for (const shell of ['bash', 'zsh', 'fish'])
    expect(await inProject('npx', ['catchword', 'completion', shell])).toMatchObject({ code: 0 });
});

it('npm ci in a checkout builds what `npm run demo` runs, and npm install builds the package of a git address', async () => {
  const checkout = join(project, 'checkout');
  const { stdout: listed } = await run('git', ['ls-files', '-co', '--exclude-standard', '-z'], { cwd: ROOT });
  const files = listed.split('\0').filter((file) => file !== '' && file !== 'node_modules');
  for (const file of files.filter((one) => existsSync(join(ROOT, one)))) cpSync(join(ROOT, file), join(checkout, file));
  const env = { ...process.env, npm_config_better_sqlite3_local_prebuilds: prebuilt, NODE_OPTIONS: '' };
  const inCheckout = (program: string, ...args: string[]) => run(program, args, { cwd: checkout, env });
  await inCheckout('npm', 'ci', '--no-audit', '--no-fund');
  const { stdout } = await inCheckout('npm', 'run', '--silent', 'demo', '--', '--json');
  expect(JSON.parse(stdout)).toBeTypeOf('object');
  for (const args of [
    ['init', '-q'],
    ['add', '.'],
    ['-c', 'user.name=a', '-c', 'user.email=a@b', 'commit', '-qm', 'a'],
  ])
    await inCheckout('git', ...args);
  const user = join(project, 'user');
  mkdirSync(user);
  writeFileSync(join(user, 'package.json'), '{"name":"user","private":true}');
  const git = ['install', '--no-audit', '--no-fund', '--allow-git=root', `git+file://${checkout}`];
  const { stderr } = await run('npm', git, { cwd: user, env });
  expect(stderr).not.toMatch(/catchword/);
  await run('npx', ['catchword', 'demo', '--json'], { cwd: user, env });
}, 900_000);
