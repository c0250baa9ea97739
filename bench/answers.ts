/**
 * Measures how fast a daemon answers 100 requests a second while it makes full runs, one kind of request after the other.
 * `npx tsx bench/answers.ts [products] [rate limit]`, default 1,000,000 lean ones and `off`, after `npm run build`.
 */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { Pool } from 'undici';
import { table } from '../src/report/text.ts';
import { environment, inDirectory, measureSync, print, serveRole, serveSandbox } from './process.ts';

const products = Number(process.argv[2] ?? 1_000_000);
const rateLimit = process.argv[3] ?? 'off';
const SECONDS = 20;
const EVERY_MS = 10;

/** Some keys of the mirror, spread over it. */
function someKeys(db: string): string[] {
  const sqlite = new Database(db, { readonly: true });
  const key = sqlite.prepare('SELECT vbid FROM products WHERE id = ?').pluck();
  const keys = Array.from({ length: 1_000 }, (_, at) => String(key.get(1 + Math.floor((at / 1_000) * products))));
  sqlite.close();
  return keys;
}

/** Sends a request each 10 ms, whether the earlier ones are answered or not. @returns milliseconds, sorted */
async function ask(url: string, path: (nth: number) => string): Promise<number[]> {
  const pool = new Pool(url, { connections: 64 });
  const asked: Promise<number>[] = [];
  const startedAt = performance.now();
  for (let nth = 0; nth < (SECONDS * 1_000) / EVERY_MS; nth++) {
    await delay(Math.max(0, startedAt + nth * EVERY_MS - performance.now()));
    const sentAt = performance.now();
    const answer = pool.request({ method: 'GET', path: path(nth) }).then(async ({ statusCode, body }) => {
      await body.dump();
      if (statusCode !== 200) throw new Error(`${path(nth)} was answered with ${statusCode}`);
      return performance.now() - sentAt;
    });
    asked.push(answer);
  }
  const took = await Promise.all(asked);
  await pool.close();
  return took.sort((one, other) => one - other);
}

await inDirectory(async (directory) => {
  const sandbox = await serveSandbox('--items', String(products), '--no-details');
  const db = join(directory, 'catalog.db');
  await measureSync(environment(sandbox.url, db), '--full');
  const settings = environment(sandbox.url, db, {
    CATCHWORD_HTTP_PORT: '0',
    CATCHWORD_FULL_CRON: '*/5 * * * * *',
    CATCHWORD_RATE_LIMIT: rateLimit,
  });
  const keys = someKeys(db);
  const keyOf = (nth: number): string => keys[(nth * 7) % keys.length] ?? '';
  const daemon = await serveRole('daemon', settings);
  await delay(6_000);
  try {
    const rows: string[][] = [];
    for (const [name, path] of [
      ['/api/products/:vbid', (nth: number) => `/api/products/${keyOf(nth)}`],
      ['/api/products?q=', (nth: number) => `/api/products?q=${keyOf(nth)}`],
      ['/api/changes', (nth: number) => `/api/changes?after=${(nth * 997) % products}&limit=10`],
    ] as const) {
      const took = await ask(daemon.url, path);
      const at = (share: number): string => (took[Math.floor(took.length * share)] ?? Number.NaN).toFixed(1);
      rows.push([name, at(0.5), at(0.9), at(0.99), (took.at(-1) ?? 0).toFixed(1)]);
    }
    print(`${products} products, ${1_000 / EVERY_MS} requests a second, full runs meanwhile, rate limit ${rateLimit}`);
    print(table(['', 'p50 ms', 'p90', 'p99', 'slowest'], rows));
  } finally {
    await daemon.stop();
    await sandbox.stop();
  }
});
