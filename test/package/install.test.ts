// @module-tag slow
import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, expect, it } from 'vitest';
import { serveHttp } from '../support/listen.ts';
import { keptSqlite, packed } from '../support/package.ts';
import { directoryOfFile, installFirst } from './fresh-project.ts';

/* Installs the packed package from the registry, as its users do. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const run = promisify(execFile);

const project = directoryOfFile('install');
/** The command in a project that has installed the package. */
const COMMAND = './node_modules/.bin/catchword';
const MANIFEST = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  readonly exports: Readonly<Record<string, string | { readonly types: string }>>;
  readonly dependencies: Readonly<Record<string, string>>;
};
/** Lets npm take a compiled SQLite, as where its binary can be downloaded. */
const prebuilt = () => ({ npm_config_better_sqlite3_local_prebuilds: keptSqlite() });

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program in the project. npx starts npm first, so most commands are run as their link. */
async function inProject(program: string, args: readonly string[], env: Record<string, string> = {}): Promise<Ended> {
  try {
    return { code: 0, ...(await run(program, args, { cwd: project, env: { ...process.env, NO_COLOR: '1', ...env } })) };
  } catch (error) {
    return error as Ended;
  }
}

async function install(...options: string[]): Promise<string> {
  const npm = ['install', '--no-audit', '--no-fund', '--prefer-offline', ...options, packed()];
  const { code, stderr } = await inProject('npm', npm, prebuilt());
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

beforeAll(() => writeFileSync(join(project, 'package.json'), '{"name":"fresh","private":true,"type":"module"}'));

installFirst('the package', () => install('--omit=optional'));

it('npm install --omit=optional installs only what the client needs', () => {
  expect(installed().sort()).toEqual(['catchword', ...Object.keys(MANIFEST.dependencies)].sort());
});

it('npm install --omit=optional gives a client that works, and names what a token store and the sandbox need', async () => {
  const url = await serveHttp((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end('{"vbid":"A","title":"One"}');
  });
  const script = `import { createClient } from 'catchword';
      import { startSandbox } from 'catchword/sandbox';
      const given = { baseUrl: process.argv[2], apiKey: 'KEY', accessToken: 'token', reference: 'one', rateLimit: 'off' };
      const client = createClient(given);
      console.log((await client.catalog.product('A')).title);
      await client.close();
      try {
        createClient({ ...given, tokenStore: 'token' });
      } catch ({ code, message, hint }) {
        console.log(code, message, hint);
      }
      await startSandbox({ items: 1 }).catch(({ code, message, hint }) => console.log(code, message, hint));`;
  writeFileSync(join(project, 'client.js'), script);
  const { stdout, stderr } = await inProject(process.execPath, ['client.js', url]);
  expect(stderr).toBe('');
  expect(stdout.split('\n')).toEqual([
    'One',
    expect.stringMatching(/^PACKAGE_MISSING .*better-sqlite3.*npm install/),
    expect.stringMatching(/^PACKAGE_MISSING .*ipaddr\.js.*npm install/),
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
    const { code, stdout, stderr } = await inProject(COMMAND, args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(
      /^error the package [\w./@-]+ is not installed \[PACKAGE_MISSING\]\nhint {2}.*npm install .*\n$/m,
    );
    expect(stderr).not.toMatch(/^ +at |ERR_MODULE_NOT_FOUND/m);
  },
);

it('npm install --omit=optional lets the program print its version and its commands', async () => {
  for (const option of ['--version', '--help']) expect(await inProject(COMMAND, [option])).toMatchObject({ code: 0 });
});

it('npm install has no script of the package to run, or to warn about', () => {
  const text = readFileSync(join(project, 'node_modules/catchword/package.json'), 'utf8');
  const { scripts } = JSON.parse(text) as { readonly scripts: Readonly<Record<string, string>> };
  for (const name of ['preinstall', 'install', 'postinstall', 'prepare']) expect(scripts).not.toHaveProperty(name);
});

it('npm install adds everything that catchword can use, for this version of Node.js, but as of npm 12 runs no install scripts: catchword says how to compile SQLite, and `npx catchword demo` runs', async () => {
  const printed = await install('--include=optional', '--ignore-scripts');
  expect(printed).not.toMatch(/EBADENGINE|deprecated|ERESOLVE/);
  const { code, stderr } = await inProject(COMMAND, ['demo']);
  expect(code).toBe(2);
  expect(stderr).toMatch(/^error the package better-sqlite3 is not compiled \[PACKAGE_MISSING\]$/m);
  const [, command = ''] = /^hint .* run it: (npm pkg set .+)\.$/m.exec(stderr) ?? [];
  expect(await inProject('sh', ['-ec', command], prebuilt())).toMatchObject({ code: 0 });
  const demo = await inProject('npx', ['catchword', 'demo', '--json']);
  expect(demo.code).toBe(0);
  expect(JSON.parse(demo.stdout)).toBeTypeOf('object');
  for (const shell of ['bash', 'zsh', 'fish'])
    expect(await inProject(COMMAND, ['completion', shell])).toMatchObject({ code: 0 });
});

// .ci/run does the same with `npm ci` and `npm run demo` in the checkout.
it('npm install of a git address builds the package with what the checkout has in git, and its program runs', async () => {
  const checkout = join(project, 'checkout');
  const { stdout: listed } = await run('git', ['ls-files', '-co', '--exclude-standard', '-z'], { cwd: ROOT });
  const files = listed.split('\0').filter((file) => file !== '' && file !== 'node_modules');
  for (const file of files.filter((one) => existsSync(join(ROOT, one)))) cpSync(join(ROOT, file), join(checkout, file));
  for (const args of [
    ['init', '-q'],
    ['add', '.'],
    ['-c', 'user.name=a', '-c', 'user.email=a@b', 'commit', '-qm', 'a'],
  ])
    await run('git', args, { cwd: checkout });
  const user = join(project, 'user');
  mkdirSync(user);
  writeFileSync(join(user, 'package.json'), '{"name":"user","private":true}');
  const env = { ...process.env, ...prebuilt(), NODE_OPTIONS: '' };
  const git = ['install', '--no-audit', '--no-fund', '--prefer-offline', '--allow-git=root', `git+file://${checkout}`];
  const { stderr } = await run('npm', git, { cwd: user, env });
  expect(stderr).not.toMatch(/catchword/);
  const { stdout } = await run(join(user, COMMAND), ['demo', '--json'], { cwd: user, env });
  expect(JSON.parse(stdout)).toBeTypeOf('object');
}, 900_000);
