// @module-tag slow
import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, expect, it } from 'vitest';
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
  readonly optionalDependencies: Readonly<Record<string, string>>;
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

installFirst('the package', () => install('--omit=optional', '--ignore-scripts'));

it('npm install --omit=optional installs what each start needs, and no driver', () => {
  const names = installed();
  expect(names).toEqual(expect.arrayContaining(Object.keys(MANIFEST.dependencies)));
  expect(names.filter((name) => name in MANIFEST.optionalDependencies)).toEqual([]);
});

it('npm install runs no install scripts as of npm 12: catchword says how to compile SQLite', async () => {
  const { code, stderr } = await inProject(COMMAND, ['demo']);
  expect(code).toBe(2);
  expect(stderr).toMatch(/^error the package better-sqlite3 is not compiled \[PACKAGE_MISSING\]$/m);
  const [, command = ''] = /^hint .* run it: (npm pkg set .+)\.$/m.exec(stderr) ?? [];
  expect(await inProject('sh', ['-ec', command], prebuilt())).toMatchObject({ code: 0 });
});

it('npm install --omit=optional gives a client with a token store, and a sandbox', async () => {
  const script = `import { createClient } from 'catchword';
      import { startSandbox } from 'catchword/sandbox';
      const sandbox = await startSandbox({ items: 1 });
      const given = { baseUrl: sandbox.url, apiKey: 'SANDBOXKEY', accessToken: 'sandboxtoken', reference: 'one', tokenStore: 'token' };
      const client = createClient(given);
      for await (const { products } of client.catalog.products()) console.log(products.length);
      await client.close();
      await sandbox.close();`;
  writeFileSync(join(project, 'client.js'), script);
  expect(await inProject(process.execPath, ['client.js'])).toEqual({ code: 0, stdout: '1\n', stderr: '' });
});

it('npm install --omit=optional has types that compile without the optional packages, for each export', async () => {
  const entries = Object.entries(MANIFEST.exports).filter(([, target]) => typeof target !== 'string');
  expect(entries).toHaveLength(12);
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

it('npm install --omit=optional runs the demo, and writes help and completion', async () => {
  const demo = await inProject(COMMAND, ['demo', '--json']);
  expect({ code: demo.code, stderr: demo.stderr }).toEqual({ code: 0, stderr: '' });
  expect(JSON.parse(demo.stdout)).toBeTypeOf('object');
  for (const args of [['--version'], ['--help'], ['completion', 'bash']])
    expect(await inProject(COMMAND, args)).toMatchObject({ code: 0 });
});

it.each([
  ['ioredis', ['daemon'], { REDIS_URL: 'redis://127.0.0.1:1' }],
  ['pg', ['sink', 'contract', 'postgres://127.0.0.1:1/shop'], {}],
  ['@nats-io/jetstream', ['sink', 'contract', 'nats://127.0.0.1:1'], {}],
])('npm install --omit=optional lets what needs %s fail with one error that names it', async (name, args, env) => {
  const source = { CATCHWORD_BASE_URL: 'http://127.0.0.1:1', CATCHWORD_API_KEY: 'KEY', CATCHWORD_HTTP_PORT: '0' };
  const { code, stderr } = await inProject(COMMAND, args, { ...source, ...env });
  expect(code).toBe(2);
  expect(stderr).toContain(`the package ${name} is not installed`);
  expect(stderr).toContain(`Only this package: npm install ${name}@`);
  expect(stderr).not.toMatch(/^ +at |ERR_MODULE_NOT_FOUND/m);
});

it('npm install has no script of the package to run, or to warn about', () => {
  const text = readFileSync(join(project, 'node_modules/catchword/package.json'), 'utf8');
  const { scripts } = JSON.parse(text) as { readonly scripts: Readonly<Record<string, string>> };
  for (const name of ['preinstall', 'install', 'postinstall', 'prepare']) expect(scripts).not.toHaveProperty(name);
});

it('npm install adds everything that catchword can use, for this version of Node.js', async () => {
  const printed = await install('--include=optional');
  expect(printed).not.toMatch(/EBADENGINE|deprecated|ERESOLVE/);
  expect(installed()).toEqual(expect.arrayContaining(Object.keys(MANIFEST.optionalDependencies)));
  expect(await inProject('npx', ['catchword', 'demo', '--json'])).toMatchObject({ code: 0 });
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
