import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import Database from 'better-sqlite3';

/*
 * Writes a small mirror as the program of a checkout writes it: runs, changes of each kind, a held run, sinks, parked
 * events and decisions. upgrade.test.ts opens one of each schema.
 *
 *     npm run mirror                                       the newest schema, from this checkout
 *     npx tsx test/upgrade/make-mirror.ts ../older-checkout   that checkout's, which has to be built
 */

const run = promisify(execFile);
const root = resolve(process.argv[2] ?? '.');
const journal = readFileSync(join(root, 'drizzle/meta/_journal.json'), 'utf8');
const { entries } = JSON.parse(journal) as { entries: { tag: string }[] };
const tag = entries.at(-1)?.tag ?? '';
const directory = mkdtempSync(join(tmpdir(), 'catchword-mirror-'));
const db = join(directory, 'catalog.db');

/** Refuses every event of this product. */
let refused = '';
const receiver = createServer((request, response) => {
  let text = '';
  request.setEncoding('utf8').on('data', (part: string) => {
    text += part;
  });
  request.on('end', () => {
    response.statusCode = refused !== '' && text.includes(`"subject":${JSON.stringify(refused)}`) ? 422 : 204;
    response.end();
  });
}).listen(0, '127.0.0.1');
await once(receiver, 'listening');
const shop = `webhook+http://127.0.0.1:${(receiver.address() as AddressInfo).port}/#allow=private`;

function start(args: readonly string[], env: Record<string, string> = {}) {
  return spawn(process.execPath, [join(root, 'dist/cli.js'), ...args], {
    cwd: directory,
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

const sandbox = start(['sandbox', '--items', '8', '--port', '0']);
const [hello] = (await once(sandbox.stdout, 'data')) as [Buffer];
const url = /http:\/\/127\.0\.0\.1:\d+/.exec(hello.toString())?.[0] ?? '';
const env = {
  CATCHWORD_BASE_URL: url,
  CATCHWORD_API_KEY: 'SANDBOXKEY',
  CATCHWORD_ACCESS_TOKEN: 'sandboxtoken',
  CATCHWORD_RATE_LIMIT: 'off',
  CATCHWORD_DB: db,
  CATCHWORD_DELTA_OVERLAP: '1s',
  CATCHWORD_SINK_FILE: 'jsonl:changes.jsonl',
  CATCHWORD_SINK_SHOP: shop,
  CATCHWORD_SINK_SHOP_SECRET: 'whsec_c2VjcmV0IG9mIHRoZSB0ZXN0cywgMzIgYnl0ZXM=',
};

/** Runs a command of that checkout. 5: removals are held. */
async function catchword(...args: readonly string[]): Promise<void> {
  const [code] = (await once(start(args, env), 'exit')) as [number];
  if (code !== 0 && code !== 5) throw new Error(`${args.join(' ')} exited with ${code}`);
}

async function mutate(mutation: Record<string, number>): Promise<void> {
  await fetch(`${url}/_sandbox/mutate`, { method: 'POST', body: JSON.stringify(mutation) });
}

function read<T>(sql: string): T | undefined {
  const sqlite = new Database(db, { readonly: true });
  try {
    return sqlite.prepare(sql).pluck().get() as T | undefined;
  } finally {
    sqlite.close();
  }
}

/** Delivers until both sinks have every change. */
async function relay(): Promise<void> {
  const service = start(['relay'], env);
  const last = '(SELECT max(seq) FROM changes)';
  while (read<number>(`SELECT count(*) FROM sinks WHERE cursor = ${last}`) !== 2) {
    await new Promise((wake) => setTimeout(wake, 200));
  }
  service.kill();
  await once(service, 'exit');
}

await catchword('sync');
await relay();
await mutate({ create: 2, update: 3, remove: 1, seed: 1 });
await new Promise((wake) => setTimeout(wake, 1_100));
await catchword('sync');
refused = read<string>('SELECT vbid FROM products WHERE changed_seq = (SELECT max(seq) FROM changes)') ?? '';
await relay();
await mutate({ update: 2, remove: 1, seed: 2 });
await catchword('sync', '--full');
await relay();
await catchword('sink', 'pause', 'file');
await mutate({ update: 2, remove: 2, seed: 3 });
Object.assign(env, { CATCHWORD_REMOVAL_LIMIT: '0' });
await catchword('sync', '--full');
sandbox.kill();
receiver.close();

const sqlite = new Database(db);
sqlite.exec('PRAGMA wal_checkpoint(TRUNCATE)');
sqlite.close();
const target = fileURLToPath(new URL(`mirrors/${tag}.db.gz`, import.meta.url));
writeFileSync(target, gzipSync(readFileSync(db), { level: 9 }));
rmSync(directory, { recursive: true });
const { stdout } = await run('git', ['-C', root, 'rev-parse', '--short', 'HEAD']);
process.stdout.write(`${target}, from ${stdout}`);
