/**
 * Measures `sink verify --deep --repair` of a PostgreSQL table: 137 of its products are damaged, found and repaired, and a
 * second pass finds nothing. Then compares again and again while the mirror gets 1,000 changes a second.
 * `npx tsx bench/verify.ts [products] [tries]`, default 1,000,000 of 1.7 kB and 10; needs PostgreSQL, the build, and 8 kB
 * of disk for each product. Takes half an hour.
 */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { startPostgres } from '@catchword/testing/postgres';
import { startProxy, type TcpProxy } from '@catchword/testing/proxy';
import pg from 'pg';
import { table } from '../src/report/text.ts';
import { writeUnder } from '../src/store/schema/lease.ts';
import { openStore, type Store } from '../src/store/store.ts';
import { CLI, inDirectory, peakBytes, print } from './process.ts';
import { keyOf, setPrices } from './products.ts';

const ITEMS = Number(process.argv[2] ?? 1_000_000);
const TRIES = Number(process.argv[3] ?? 10);
/** Changes a second, and how many of them at once. */
const RATE = 1_000;
const CHANGES = 50;

const TAMPERINGS: readonly [count: number, sql: string][] = [
  [40, `UPDATE books SET title = 'x' WHERE vbid = ANY($1)`],
  [30, 'UPDATE books_prices SET value = 0 WHERE vbid = ANY($1)'],
  [20, 'UPDATE books SET seq = seq + 1 WHERE vbid = ANY($1)'],
  [20, 'UPDATE books SET removed_at = now() WHERE vbid = ANY($1)'],
  [17, 'DELETE FROM books WHERE vbid = ANY($1)'],
  [
    10,
    `INSERT INTO books (vbid, body, seq, changed_at) SELECT 'extra' || vbid, '{}', 1, now() FROM books WHERE vbid = ANY($1)`,
  ],
];

/** Damages products that are far from each other. */
async function tamper(port: number): Promise<void> {
  const client = new pg.Client({ connectionString: `postgres://postgres@127.0.0.1:${port}/postgres` });
  await client.connect();
  const step = Math.floor(ITEMS / 137);
  let next = 0;
  for (const [count, sql] of TAMPERINGS) {
    await client.query(sql, [Array.from({ length: count }, () => keyOf(step * next++))]);
  }
  await client.end();
}

/** Lets the relay compare the store, as `sink verify --deep` does. @returns what it found, and what it cost */
async function verify(store: Store, proxy: TcpProxy, repair: boolean) {
  const request = { id: randomUUID(), deep: true, repair, removesAll: false };
  const [bytes, startedAt] = [proxy.bytes(), performance.now()];
  const row = () => store.sinks.get('books');
  store.request(({ sinks }) => sinks.askCheck(row()?.id ?? 0, request));
  for (;;) {
    const check = row()?.checked ?? null;
    if (check?.id === request.id) {
      if (check.error !== null) throw new Error(check.error);
      return { ...check, bytes: proxy.bytes() - bytes, seconds: (performance.now() - startedAt) / 1e3 };
    }
    await delay(100);
  }
}

/** Changes products at random places, `RATE` a second, until `signal` aborts. @returns how many */
async function keepChanging(store: Store, signal: AbortSignal): Promise<number> {
  const startedAt = performance.now();
  let changes = 0;
  for (let price = 1; !signal.aborted; price++) {
    const first = Math.floor(Math.random() * (ITEMS - CHANGES));
    setPrices(store, first, first + CHANGES, price);
    changes += CHANGES;
    await delay(Math.max(0, startedAt + (changes * 1e3) / RATE - performance.now()));
  }
  return changes;
}

await inDirectory(async (directory) => {
  const store = openStore(join(directory, 'catalog.db'));
  setPrices(store, 0, ITEMS, 0);
  // Only the store of a mirror that is complete is compared.
  writeUnder(store.keeperLease, Date.now(), (writer) => writer.advanceWatermark(1, 1));
  const postgres = await startPostgres();
  const proxy = await startProxy(postgres.port);
  const env = {
    CATCHWORD_BASE_URL: 'http://127.0.0.1',
    CATCHWORD_DB: store.path,
    CATCHWORD_SINK_BOOKS: `postgres://postgres@127.0.0.1:${proxy.port}/postgres?table=books`,
  };
  const relay = spawn(process.execPath, [CLI, 'relay'], { env: { ...process.env, ...env }, stdio: 'ignore' });
  try {
    while (store.sinks.get('books')?.cursor !== store.changes.lastSeq()) await delay(100);
    const loaded = proxy.bytes();
    const filledPeak = peakBytes(relay.pid ?? 0);
    const share = (bytes: number): string => `${((100 * bytes) / loaded).toFixed(2)}%`;
    await tamper(postgres.port);
    const rows = [];
    for (const [what, repair] of [
      ['repair', true],
      ['second pass', false],
    ] as const) {
      const { differing, missing, extra, repaired, bytes, seconds } = await verify(store, proxy, repair);
      rows.push([what, differing, missing, extra, repaired, seconds.toFixed(1), share(bytes)]);
    }
    print(`${ITEMS} products, ${(loaded / 1e9).toFixed(2)} GB over the wire to load them`);
    print(table(['', 'differ', 'missing', 'extra', 'repaired', 'seconds', 'of these bytes'], rows));
    const stop = new AbortController();
    const changing = keepChanging(store, stop.signal);
    const startedAt = performance.now();
    let wrong = 0;
    for (let turn = 0; turn < TRIES; turn++) {
      // Another comparison at once would let only one batch through.
      const newest = store.changes.lastSeq();
      while ((store.sinks.get('books')?.cursor ?? 0) < newest) await delay(20);
      const { differing, missing, extra } = await verify(store, proxy, false);
      wrong += differing + missing + extra;
    }
    stop.abort();
    const rate = Math.round(((await changing) * 1e3) / (performance.now() - startedAt));
    print(`${TRIES} tries with ${rate} changes a second: ${wrong} false differences`);
    const peaks = [filledPeak, peakBytes(relay.pid ?? 0)].map((bytes) => `${Math.round(bytes / 1e6)} MB`);
    print(`peak memory of the relay: ${peaks.join(' after the load, ')} after all`);
  } finally {
    const ended = once(relay, 'exit');
    relay.kill('SIGTERM');
    await ended;
    await proxy.cut();
    await postgres.stop();
    store.close();
  }
});
