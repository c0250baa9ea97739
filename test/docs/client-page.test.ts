// @module-tag slow
import { execFile } from 'node:child_process';
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { createClient } from 'catchword-client/client';
import { expect, it } from 'vitest';
import { sourcePath } from '../support/sources.ts';
import { BLOCKS } from './blocks.ts';
import { FRAGMENTS } from './page-script.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PAGE = readFileSync(join(ROOT, 'docs/client.md'), 'utf8');
const [, CODE = '', PRINTED = ''] =
  /## Calls\n[\s\S]*?```ts\n([\s\S]*?)```\n[\s\S]*?```text\n([\s\S]*?)```/.exec(PAGE) ?? [];

/** What is read of a package's description. */
interface PackageJson {
  readonly name: string;
  readonly exports: Readonly<Record<string, { readonly types?: string }>>;
}

/** The example as a file, next to a link to the packages that it needs. */
function exampleFile(): string {
  const directory = temporaryDirectory();
  symlinkSync(join(ROOT, 'node_modules'), join(directory, 'node_modules'));
  const file = join(directory, 'example.mts');
  const here = CODE.replace("'catchword'", `'${ROOT}packages/client/src/client.ts'`);
  writeFileSync(file, here.replace("'catchword/sandbox'", `'${ROOT}packages/sandbox/src/sandbox.ts'`));
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

it('the documents have examples of TypeScript whose arguments and results have the types of the packages', async () => {
  const directory = temporaryDirectory();
  const readme = readFileSync(join(ROOT, 'packages/client/README.md'), 'utf8');
  const ofClient = [...readme.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code = '']) => code);
  const blocks = BLOCKS.filter(({ page, language }) => language === 'ts' && !(page in FRAGMENTS));
  const files = [...blocks.map(({ code }) => code), ...ofClient].map((code, nth) => {
    const file = join(directory, `block-${nth}.mts`);
    writeFileSync(file, code);
    return file;
  });
  expect(files.length).toBeGreaterThan(8);
  const paths: Record<string, string[]> = {};
  for (const folder of ['', 'packages/client/']) {
    const about = JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8')) as PackageJson;
    for (const [name, { types }] of Object.entries(about.exports))
      if (types !== undefined)
        paths[`${about.name}${name.slice(1)}`] = [
          join(ROOT, sourcePath(types.slice('./dist/'.length).replace('.d.ts', '.ts'))),
        ];
  }
  const compilerOptions = {
    paths,
    rewriteRelativeImportExtensions: false,
    allowImportingTsExtensions: true,
    noUnusedLocals: false,
    typeRoots: [join(ROOT, 'node_modules/@types')],
  };
  const config = join(directory, 'tsconfig.json');
  const all = [...files, join(ROOT, 'packages/base/src/undici-files.d.ts')];
  writeFileSync(
    config,
    JSON.stringify({ extends: join(ROOT, 'tsconfig.json'), compilerOptions, include: [], files: all }),
  );
  const ended = promisify(execFile)(join(ROOT, 'node_modules/.bin/tsc'), ['-p', config]).catch(
    (error: unknown) => error,
  );
  expect(await ended).toMatchObject({ stdout: '' });
});
