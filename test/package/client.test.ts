// @module-tag slow
import { execFile } from 'node:child_process';
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startSandbox } from '@catchword/sandbox/sandbox-server';
import { expect, it, onTestFinished } from 'vitest';
import { directoryOfFile, installFirst } from './fresh-project.ts';

/* Packs the package of the client as for publishing, and installs it from the registry without options, as its users do. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const run = promisify(execFile);

const project = directoryOfFile('client');

installFirst('catchword-client', async () => {
  const pack = ['pack', '-w', 'catchword-client', '--silent', '--pack-destination', project];
  const { stdout } = await run('npm', pack, { cwd: ROOT });
  writeFileSync(join(project, 'package.json'), '{"name":"fresh","private":true,"type":"module"}');
  await run('npm', ['install', '--no-audit', '--no-fund', join(project, stdout.trim())], { cwd: project });
});

/** Runs a module of the project against a sandbox. @returns what it printed, as JSON */
async function runModule(text: string): Promise<unknown> {
  const sandbox = await startSandbox({ items: 20, users: 2 });
  onTestFinished(() => sandbox.stop());
  const script = `import { CatchwordError, createClient } from 'catchword-client';
    const given = { baseUrl: process.argv[2], apiKey: 'SANDBOXKEY', accessToken: 'sandboxtoken', reference: 'sandbox-reader' };
    const out = [];
    ${text}
    process.stdout.write(JSON.stringify(out));`;
  writeFileSync(join(project, 'use.js'), script);
  const { stdout, stderr } = await run(process.execPath, ['use.js', sandbox.url], { cwd: project });
  expect(stderr).toBe('');
  return JSON.parse(stdout);
}

it('catchword-client installs four packages, none of them optional or compiled', () => {
  const lock = JSON.parse(readFileSync(join(project, 'node_modules/.package-lock.json'), 'utf8')) as {
    readonly packages: Readonly<Record<string, unknown>>;
  };
  const names = Object.keys(lock.packages).map((path) => path.replace('node_modules/', ''));
  expect(names.sort()).toEqual(['@rgrove/parse-xml', 'catchword-client', 'ipaddr.js', 'undici', 'zod']);
});

it('catchword-client contains only its build, with its licence and its description', async () => {
  const { stdout } = await run('find', ['.', '-type', 'f', '-not', '-name', '*.js', '-not', '-name', '*.d.ts'], {
    cwd: join(project, 'node_modules/catchword-client'),
  });
  expect(stdout.trim().split('\n').sort()).toEqual(['./LICENSE', './README.md', './package.json']);
});

it('catchword-client reads and writes at the service, and reads events', async () => {
  const out = await runModule(`import * as events from 'catchword-client/events';
      const client = createClient(given);
      for await (const { products } of client.catalog.products()) out.push(products.length);
      const { vbid } = await client.assets.create({ title: 'Tides', imprint_id: 1 });
      out.push((await client.catalog.product(vbid)).title);
      const [verified] = await client.credentials.verify(['user-0000001']);
      out.push(verified.ok);
      await client.close();
      try {
        events.parseEvent('{}');
      } catch (error) {
        out.push(error instanceof CatchwordError, error.code);
      }`);
  expect(out).toEqual([20, 'Tides', true, true, 'EVENT_INVALID']);
});

it('catchword-client starts a sandbox, and refuses options that cannot be', async () => {
  const out = await runModule(`import { startSandbox } from 'catchword-client/sandbox';
      const sandbox = await startSandbox({ items: 5 });
      out.push((await sandbox.products()).length);
      await sandbox.close();
      await startSandbox({ items: -1 }).catch(({ code }) => out.push(code));`);
  expect(out).toEqual([5, 'USAGE']);
});

it('catchword-client names the package that a token store needs, and uses it once it is installed', async () => {
  const open = `try {
        await createClient({ ...given, tokenStore: 'token' }).close();
        out.push('opened');
      } catch ({ code, message, hint }) {
        out.push(code, message, hint);
      }`;
  expect(await runModule(open)).toEqual([
    'PACKAGE_MISSING',
    'the package better-sqlite3 is not installed',
    expect.stringMatching(/^Install it: npm install better-sqlite3@\^\d+\.\d+\.\d+\.$/),
  ]);
  // Compiling it takes a minute.
  symlinkSync(join(ROOT, 'node_modules/better-sqlite3'), join(project, 'node_modules/better-sqlite3'));
  expect(await runModule(open)).toEqual(['opened']);
});

it('catchword-client has types that compile strictly, checked themselves, without those of Node.js', async () => {
  const script = `import { type Asset, type AssetFields, CatchwordError, type ClientOptions, createClient } from 'catchword-client';
      import { type CatchwordEvent, parseEvent } from 'catchword-client/events';
      const options: ClientOptions = { baseUrl: 'https://service.example', apiKey: 'KEY', tokenStore: 'token' };
      export const fields: AssetFields = { title: 'Tides', imprint_id: 1 };
      export const made: Promise<Asset> = createClient(options).assets.create(fields);
      export const event: CatchwordEvent = parseEvent('{}');
      export const isOurs = (error: unknown): boolean => error instanceof CatchwordError && error.code === 'NOT_FOUND';
      // @ts-expect-error a misspelt field
      export const wrong: AssetFields = { titel: 'A' };`;
  writeFileSync(join(project, 'use.ts'), script);
  const strict = ['--noEmit', '--strict', '--exactOptionalPropertyTypes', '--skipLibCheck', 'false', '--types', ''];
  const tsc = [join(ROOT, 'node_modules/typescript/bin/tsc'), ...strict, '--module', 'nodenext', 'use.ts'];
  const ended = await run(process.execPath, tsc, { cwd: project }).catch((error: { stdout: string }) => error);
  expect(ended.stdout).toBe('');
});
