// @module-tag slow
import { execFile } from 'node:child_process';
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { createClient } from '../../src/client/client.ts';
import { temporaryDirectory } from '../support/mirror.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PAGE = readFileSync(join(ROOT, 'docs/client.md'), 'utf8');
const [, CODE = '', PRINTED = ''] =
  /## Calls\n[\s\S]*?```ts\n([\s\S]*?)```\n[\s\S]*?```text\n([\s\S]*?)```/.exec(PAGE) ?? [];

/** The example as a file, next to a link to the packages that it needs. */
function exampleFile(): string {
  const directory = temporaryDirectory();
  symlinkSync(join(ROOT, 'node_modules'), join(directory, 'node_modules'));
  const file = join(directory, 'example.mts');
  const here = CODE.replace("'catchword'", `'${ROOT}src/client/client.ts'`);
  writeFileSync(file, here.replace("'catchword/sandbox'", `'${ROOT}src/sandbox/sandbox.ts'`));
  return file;
}

it('docs/client.md has an example for each call of the client', async () => {
  const client = createClient({ baseUrl: 'http://127.0.0.1:9', apiKey: 'key', accessToken: 'token' });
  const calls = Object.entries(client).flatMap(([group, value]) =>
    typeof value === 'function' ? [group] : Object.keys(value).map((name) => `${group}.${name}`),
  );
  await client.close();
  expect(calls.length).toBeGreaterThan(15);
  expect(calls.filter((call) => !CODE.includes(`client.${call}(`))).toEqual([]);
});

it('docs/client.md has examples that print what it says', async () => {
  const { stdout } = await promisify(execFile)(join(ROOT, 'node_modules/.bin/tsx'), [exampleFile()]);
  expect(stdout).toBe(PRINTED);
});

it('docs/client.md has examples whose arguments and results have the types of the client', async () => {
  const file = exampleFile();
  const config = join(dirname(file), 'tsconfig.json');
  const compilerOptions = {
    noEmit: true,
    rewriteRelativeImportExtensions: false,
    allowImportingTsExtensions: true,
    typeRoots: [join(ROOT, 'node_modules/@types')],
  };
  writeFileSync(
    config,
    JSON.stringify({
      extends: join(ROOT, 'tsconfig.json'),
      compilerOptions,
      include: [],
      files: [file, join(ROOT, 'src/base/undici-files.d.ts')],
    }),
  );
  const ended = promisify(execFile)(join(ROOT, 'node_modules/.bin/tsc'), ['-p', config]).catch(
    (error: unknown) => error,
  );
  expect(await ended).toMatchObject({ stdout: '' });
});
