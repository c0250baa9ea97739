import { mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { explainMissing } from '@catchword/base/missing-package';
import { listen, serveHttp } from '@catchword/testing/listen';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { describe, expect, it } from 'vitest';
import { openStore } from '../../src/store/store.ts';
import { CLI, runProcess } from '../support/cli.ts';
import { runHere } from '../support/in-process.ts';

/* A fault of the surroundings is not called a fault of catchword, of the user or of the service. */

const SETTINGS = {
  CATCHWORD_API_KEY: 'SANDBOXKEY',
  CATCHWORD_ACCESS_TOKEN: 'sandboxtoken',
  CATCHWORD_RATE_LIMIT: 'off',
  LOG_LEVEL: 'silent',
};

function catalogAt(url: string, more: Record<string, string> = {}) {
  return runHere(['catalog'], { ...SETTINGS, CATCHWORD_BASE_URL: url, ...more }, temporaryDirectory());
}

it.each([
  [
    'another Node.js',
    `The module 'x.node'\nwas compiled against a different Node.js version using\nNODE_MODULE_VERSION 115. Please try re-compiling`,
    /The module 'x.node' was compiled against a different Node.js version using NODE_MODULE_VERSION 115\.$/,
  ],
  ['another C library', '/libc.so.6: version `GLIBC_2.38 not found', /GLIBC_2\.38 not found$/],
])('SQLite that was compiled for %s is named, and how to compile it', (_, message, said) => {
  const error = Object.assign(new Error(message), { code: 'ERR_DLOPEN_FAILED' });
  expect(explainMissing(error)).toMatchObject({
    code: 'PACKAGE_MISSING',
    message: expect.stringMatching(said) as string,
    hint: expect.stringContaining('npm rebuild better-sqlite3') as string,
  });
});

it('a command whose working directory was deleted says so', async () => {
  const gone = join(temporaryDirectory(), 'gone');
  mkdirSync(gone);
  const script = 'cd "$2" && rmdir "$2" && exec "$0" "$1" status';
  const { code, stderr } = await runProcess(['sh', '-c', script, process.execPath, CLI, gone], {}, '/');
  expect(code).toBe(2);
  expect(stderr).toMatch(/the working directory cannot be used \(ENOENT\) \[USAGE\]/);
});

/** Runs a command with a mirror on a file system that is mounted for reading only. */
const READ_ONLY = `
mount --bind "$2" "$2" && mount -o remount,bind,ro "$2" || exit 99
exec "$0" "$1" "$3"`;

const canMount = process.platform === 'linux' && process.getuid?.() === 0;

it.skipIf(!canMount)(
  'a mirror on a file system that is mounted for reading is not called a matter of rights',
  async () => {
    const place = temporaryDirectory();
    const settings = { ...SETTINGS, CATCHWORD_BASE_URL: 'http://127.0.0.1:1', CATCHWORD_DB: join(place, 'catalog.db') };
    openStore(settings.CATCHWORD_DB).close();
    for (const [verb, what] of Object.entries({ sync: 'cannot be written', status: 'and cannot be created' })) {
      const command = ['unshare', '-m', 'sh', '-c', READ_ONLY, process.execPath, CLI, place, verb];
      const { code, stderr } = await runProcess(command, settings, '/');
      expect(code).toBe(2);
      expect(stderr).toContain(`${what}: its file system is mounted for reading only (EROFS) [MIRROR_UNUSABLE]`);
      expect(stderr).toContain('Mount it for writing');
    }
  },
);

/** Runs a command with an SQLite that Node.js cannot load. */
const UNFIT = `
mount --bind "$0" "$3" || exit 99
exec "$1" "$2" backup "$4"`;

it.skipIf(!canMount)('a backup whose SQLite does not fit Node.js is not called a matter of rights', async () => {
  const binary = createRequire(import.meta.url).resolve('better-sqlite3/build/Release/better_sqlite3.node');
  const place = temporaryDirectory();
  writeFileSync(join(place, 'catalog.db'), '');
  const settings = { ...SETTINGS, CATCHWORD_DB: join(place, 'catalog.db') };
  const unfit = [CLI, process.execPath, CLI, binary, join(place, 'b.db')];
  const { code, stderr } = await runProcess(['unshare', '-m', 'sh', '-c', UNFIT, ...unfit], settings, '/');
  expect(code).toBe(2);
  expect(stderr).toMatch(/better-sqlite3 does not fit Node\.js .*\[PACKAGE_MISSING\]/);
  expect(stderr).toContain('npm rebuild better-sqlite3');
});

describe('an answer that is not valid HTTP', () => {
  const body = '{"num_items":0}';
  it.each([
    ['headers of 20 kB', `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`, /Headers Overflow Error/],
    ['a broken header', 'HTTP/1.1 200 OK\r\nno header\r\n\r\n', /Invalid header token/],
    ['two lengths', `HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 15\r\n\r\n${body}`, /content-length/i],
    ['another protocol', '220 mail.example ESMTP\r\n', /Expected HTTP/],
    [
      'a chunk of no length',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
      /Invalid character in chunk size/,
    ],
  ])('with %s is named with what the parser found', async (_, answer, reason) => {
    const server = createServer((socket) => void socket.on('error', () => {}).once('data', () => socket.end(answer)));
    const { code, stderr } = await catalogAt(`http://127.0.0.1:${await listen(server)}`);
    expect(code).toBe(75);
    expect(stderr).toMatch(/the answer is not valid HTTP/);
    expect(stderr).toMatch(reason);
    expect(stderr).not.toMatch(/may be down|undefined/);
  });
});

it('a redirect shows the path that changed, without its query', async () => {
  const url = await serveHttp((request, response) => {
    response.writeHead(308, { location: `/api${request.url?.split('?')[0]}?session=abc` }).end();
  });
  const { stderr } = await catalogAt(url);
  expect(stderr).toContain(`redirects to ${url}/api/v4/products;`);
  expect(stderr).not.toContain('session');
});

it.each([
  ['SANDBOXKEY', /sent in the header X-Service-API-Key\.$/m],
  [
    'Bearer abc',
    /sent in the header X-Service-API-Key, behind the word Bearer: remove it, or choose the header Authorization/,
  ],
])('a key %s that the service refuses is shown with its header', async (key, shown) => {
  const url = await serveHttp((_request, response) => void response.writeHead(401).end());
  const { code, stderr } = await catalogAt(url, { CATCHWORD_API_KEY: key });
  expect(code).toBe(2);
  expect(stderr).toMatch(shown);
  expect(stderr).not.toContain('abc');
});

it.each([
  ['http://127.0.0.1:8080/#/v4', /a query or a fragment/],
  ['https://books.example/#top', /a query or a fragment/],
  ['https://shop:p#ss@books.example:8080/', /user name or password|an http or https address/],
])('a base URL %s is refused with the part of it that it must not have', async (url, reason) => {
  const { code, stderr } = await catalogAt(url);
  expect(code).toBe(2);
  expect(stderr).toMatch(reason);
});
