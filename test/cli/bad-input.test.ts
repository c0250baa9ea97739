import { closeSync, createWriteStream, existsSync, mkdirSync, openSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Sandbox, startSandbox } from '@catchword/sandbox/sandbox-server';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { serve } from '../../packages/client/test/connection.ts';
import { openStore } from '../../src/store/store.ts';
import { runRedirected } from '../support/cli.ts';
import { runHere } from '../support/in-process.ts';
import { settingsFor } from '../support/mirror.ts';
import { csvOf } from './credential-service.ts';
import { expectFailure } from './failure.ts';

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await startSandbox({ items: 100 });
});
afterAll(() => sandbox.stop());

/** The error that a service logs, as other commands print it. */
function printed(stderr: string): string {
  if (!stderr.startsWith('{')) return stderr;
  const { reason, code, hint } = JSON.parse(stderr) as { reason: string; code: string; hint: string };
  return `error ${reason} [${code}]\nhint  ${hint}\n`;
}

/** Expects one line with the error, one with the hint, and nothing else. */
async function expectRefusal(
  args: string[],
  more: Record<string, string>,
  code: number,
  message: RegExp,
  directory = temporaryDirectory(),
): Promise<string> {
  const settings = { ...settingsFor(sandbox.url, join(directory, 'catalog.db')), LOG_LEVEL: '', ...more };
  const ended = await runHere(args, settings, directory);
  expectFailure({ ...ended, stderr: printed(ended.stderr) }, code, message);
  expect(ended.stderr).not.toMatch(/\n\s+at /);
  return directory;
}

it.each([
  [['snyc'], /unknown command 'snyc'.*sync/],
  [['sync', '--fool'], /unknown option '--fool'/],
  [['sync', '--from', 'yesterday'], /--from: "yesterday" is not a time/],
  [['sync', '--full', '--from', '2026-01-01'], /exclude each other/],
  [['run', 'x'], /<run>: "x" is not a whole number/],
  [['product'], /missing required argument 'vbid'/],
  [['sandbox', '--faults', 'gremlins'], /gremlins/],
  [['sandbox', '--items', '-1'], /--items/],
])('catchword rejects the command line %j', async (args, message) => {
  const directory = await expectRefusal(args, {}, 2, message);
  expect(readdirSync(directory)).toEqual([]);
});

it.each([
  ['CATCHWORD_BASE_URL', ''],
  ['CATCHWORD_BASE_URL', 'ftp://x'],
  ['CATCHWORD_BASE_URL', 'nothing'],
  ['CATCHWORD_API_KEY', ''],
  ['CATCHWORD_PER_PAGE', '1001'],
  ['CATCHWORD_PER_PAGE', 'many'],
  ['CATCHWORD_RATE_LIMIT', 'fast'],
  ['CATCHWORD_REQUEST_TIMEOUT', '60'],
  ['CATCHWORD_TIMEZONE', 'Mars/Olympus'],
  ['CATCHWORD_IGNORE_FIELDS', 'views'],
  ['CATCHWORD_DELTA_CRON', 'hourly'],
  ['LOG_LEVEL', 'loud'],
  ['REDIS_URL', 'localhost:6379'],
  ['CATCHWORD_BASE_URL', 'http://user:topsecret@127.0.0.1:9'],
  ['CATCHWORD_BASE_URL', 'https://topsecret@127.0.0.1/'],
  ['CATCHWORD_BASE_URL', 'http://user:half/topsecret@127.0.0.1'],
  ['CATCHWORD_BASE_URL', 'user:topsecret@127.0.0.1'],
  ['CATCHWORD_BASE_URL', 'ftp://user:p@topsecret@127.0.0.1'],
  ['CATCHWORD_BASE_URL', 'ftp://127.0.0.1/#topsecret'],
  ['CATCHWORD_LOOKUP_PATH', '/v4/products?key=topsecret'],
  ['CATCHWORD_LOOKUP_PATH', 'http://user:topsecret@127.0.0.1/products'],
  ['REDIS_URL', 'http://user:topsecret@127.0.0.1'],
])('catchword rejects the setting, and shows no secret of an address: %s=%s', async (name, value) => {
  for (const verb of ['sync', 'daemon']) {
    const directory = await expectRefusal([verb], { [name]: value }, 2, new RegExp(`^(?!.*topsecret).*${name}`, 's'));
    expect(readdirSync(directory)).toEqual([]);
  }
});

it.each([
  ['views', /must have a slash before each name: write \/views, not views/],
  ['/price,#/variants', /write \/variants, not #\/variants/],
  ['/a~2', /~0 for each ~ in a name, and ~1 for each \/: \/a~2 has/],
  ['/price/', /a name after each slash: \/price\/ has one without/],
  ['/*', /must name a field: \/\* ignores every change/],
])('catchword says which ignored field cannot match, and what to write: %s', async (value, message) => {
  await expectRefusal(['sync'], { CATCHWORD_IGNORE_FIELDS: value }, 2, message);
});

it('catchword reports an unreachable source and leaves no unfinished run', async () => {
  const directory = await expectRefusal(['sync'], { CATCHWORD_BASE_URL: 'http://127.0.0.1:1' }, 75, /ECONNREFUSED/);
  const store = openStore(join(directory, 'catalog.db'));
  expect(store.runs.unfinished()).toBeUndefined();
  store.close();
});

it.each([
  [{ CATCHWORD_API_KEY: 'WRONG' }, /403.*SOURCE_AUTH/],
  [{ CATCHWORD_ACCESS_TOKEN: '' }, /401.*SOURCE_AUTH/],
  [{ CATCHWORD_API_KEY: 'NOCATALOG', CATCHWORD_ACCESS_TOKEN: 'nocatalogtoken' }, /Catalog not found.*SOURCE_AUTH/],
])('catchword reports wrong credentials: %j', async (more, message) => {
  await expectRefusal(['sync'], more, 2, message);
});

it('catchword reports an address that is not the service', async () => {
  const { url } = await serve(() => ({ headers: { 'content-type': 'text/html' }, body: '<html>Welcome</html>' }));
  await expectRefusal(['sync'], { CATCHWORD_BASE_URL: url }, 2, /text\/html, not JSON.*SOURCE_NOT_SERVICE/);
  await expectRefusal(['sync'], { CATCHWORD_BASE_URL: `${sandbox.url}/wrong` }, 2, /404.*SOURCE_NOT_SERVICE/);
});

it('catchword rejects a file that is not a mirror of this version', async () => {
  const directory = temporaryDirectory();
  writeFileSync(join(directory, 'text.db'), 'hello, this is a text of some length');
  await expectRefusal(['sync'], { CATCHWORD_DB: 'text.db' }, 2, /not an SQLite database/, directory);
  new Database(join(directory, 'foreign.db')).exec('CREATE TABLE theirs (a)').close();
  await expectRefusal(['sync'], { CATCHWORD_DB: 'foreign.db' }, 2, /another program's database/, directory);
  openStore(join(directory, 'newer.db')).close();
  const newer = new Database(join(directory, 'newer.db'));
  newer.prepare("INSERT INTO __drizzle_migrations (hash, created_at) VALUES ('x', 9999999999999)").run();
  newer.close();
  await expectRefusal(['sync'], { CATCHWORD_DB: 'newer.db' }, 2, /newer catchword/, directory);
});

it('catchword rejects a path that cannot be written', async () => {
  const directory = temporaryDirectory();
  writeFileSync(join(directory, 'file'), '');
  const refuse = (db: string, message: RegExp) => expectRefusal(['sync'], { CATCHWORD_DB: db }, 2, message, directory);
  await refuse(join(directory, 'file', 'catalog.db'), /MIRROR_UNUSABLE/);
  await refuse('/proc/catchword/catalog.db', /cannot be created/);
  // Root can write everywhere.
  mkdirSync(join(directory, 'locked'), { mode: 0o500 });
  if (process.getuid?.() !== 0) await refuse(join(directory, 'locked', 'catalog.db'), /cannot be created/);
  expect(existsSync(join(directory, 'locked', 'catalog.db'))).toBe(false);
});

const FULL = /^error the output cannot be written: ENOSPC[^\n]+\nhint {2}[^\n]+\n$/;

it('catchword reports that a full disk behind stdout takes no help', async () => {
  const ended = await runRedirected(['--help'], '> /dev/full', {}, temporaryDirectory());
  expect(ended).toMatchObject({ code: 1, signal: null, stdout: '', stderr: expect.stringMatching(FULL) });
});

it.each([[['licenses', '--json']], [['credentials', 'verify', 'users.csv']]])(
  'catchword reports a full disk behind stdout: %j',
  { tags: ['slow'] },
  async (args) => {
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'users.csv'), csvOf(20_000));
    const full = openSync('/dev/full', 'w');
    onTestFinished(() => closeSync(full));
    const stdout = createWriteStream('', { fd: full, autoClose: false });
    const settings = settingsFor(sandbox.url, join(directory, 'catalog.db'));
    const ended = await runHere(args, settings, directory, { stdout });
    const said = args.includes('--json') ? /^\{"error":\{"code":"OUTPUT_LOST",[^\n]+ENOSPC[^\n]+\}\}\n$/ : FULL;
    expect(ended).toMatchObject({ code: 1, stderr: expect.stringMatching(said) });
  },
);

it('catchword reports a missing mirror and does not create one', async () => {
  for (const args of [['status'], ['runs'], ['product', 'A'], ['search', 'a'], ['changes'], ['cancel', '1']]) {
    const directory = await expectRefusal(args, {}, 1, /no mirror at .*NOT_FOUND/);
    expect(readdirSync(directory)).toEqual([]);
  }
});
