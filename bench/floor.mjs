// The least that a program must do for the same result, without checks or change detection.
//
//   node floor.mjs read <address> <pages> [parse]   reads all pages, eight at a time, and drops them or their JSON
//   node floor.mjs meanwhile <address> <pages> <parse or drop> <other verb> …
//                                                   does the same in a thread, while this one does the other
//   node floor.mjs known <mirror>                   reads the text of all products, a thousand at a time
//   node floor.mjs columns <result> <file>          prints the columns of products in which the two differ
//   node floor.mjs write <result> <file> <products> <columns>
//                                                   writes to <file> what the mirror <result> has and <file> lacks, that
//                                                   many products in a transaction, as durably as catchword; into an empty
//                                                   file without <columns>
//   node floor.mjs threads <mirror>                 opens a mirror in two threads, and fills the cache of one
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { isMainThread, Worker, workerData } from 'node:worker_threads';
import Database from 'better-sqlite3';

const FIRST = ['products', 'products_vbid', 'products_changed_seq', 'changes', 'changes_product'];
/** Indexes that a first load makes when all rows are there. */
const AFTERWARDS = ['products_changed_at', 'products_print_isbn', 'products_e_isbn'];

async function read(address, pages, then) {
  const { Pool } = await import('undici');
  const pool = new Pool(address, { connections: 8 });
  const headers = { 'X-Service-API-Key': 'SANDBOXKEY', 'X-Service-Access-Token': 'sandboxtoken' };
  let next = 1;
  async function loop() {
    while (next <= Number(pages)) {
      const path = `/v4/products?page=${next++}&per_page=1000`;
      const response = await pool.request({ method: 'GET', path, headers });
      const bytes = await response.body.arrayBuffer();
      if (then === 'parse') JSON.parse(Buffer.from(bytes).toString());
    }
  }
  await Promise.all(Array.from({ length: 8 }, loop));
  await pool.close();
}

async function meanwhile(address, pages, then, what, ...given) {
  const reading = new Worker(fileURLToPath(import.meta.url), { workerData: ['read', address, pages, then] });
  const ended = once(reading, 'exit');
  await VERBS[what](...given);
  await ended;
}

function open(file) {
  const db = new Database(file);
  db.exec(`PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
    PRAGMA wal_autocheckpoint = 8192; PRAGMA cache_size = -32768;
    PRAGMA temp_store = MEMORY`);
  return db;
}

function openBoth(result, file) {
  const db = open(file);
  db.exec(`ATTACH '${result}' AS result; PRAGMA result.cache_size = -32768`);
  return db;
}

/** Prints which columns differ: an index is written when one of its columns is set, even to the same value. */
function columns(result, file) {
  const db = openBoth(result, file);
  const names = db.pragma('result.table_info(products)').map(({ name }) => name);
  const isChanged = (name) =>
    db
      .prepare(
        `SELECT EXISTS (SELECT 1 FROM main.products AS p JOIN result.products AS r USING (id) WHERE p.${name} IS NOT r.${name})`,
      )
      .pluck()
      .get() === 1;
  process.stdout.write(names.filter(isChanged).join());
  db.close();
}

function write(result, file, products, set = '') {
  const db = openBoth(result, file);
  const isEmpty = set === '';
  const ownSql = db.prepare('SELECT sql FROM result.sqlite_schema WHERE name = ?').pluck();
  if (isEmpty) for (const name of FIRST) db.exec(ownSql.get(name));
  const newest = Number(db.prepare('SELECT coalesce(max(seq), 0) FROM main.changes').pluck().get());
  const changed = `result.products AS r WHERE +r.id BETWEEN ? AND ? AND r.changed_seq > ${newest}`;

  const put = isEmpty
    ? db.prepare('INSERT OR FAIL INTO main.products SELECT * FROM result.products WHERE id BETWEEN ? AND ?')
    : db.prepare(
        `UPDATE OR FAIL main.products SET ${set
          .split(',')
          .map((name) => `${name} = r.${name}`)
          .join()} FROM ${changed} AND products.id = r.id`,
      );
  const log = db.prepare(`INSERT OR FAIL INTO main.changes SELECT * FROM result.changes
    WHERE +product_id BETWEEN ? AND ? AND seq > ${newest} ORDER BY seq`);
  const lastId = db.prepare('SELECT max(id) FROM result.products').pluck().get();
  for (let from = 1; from <= lastId; from += Number(products)) {
    const ids = [from, from + Number(products) - 1];
    db.exec('BEGIN IMMEDIATE');
    put.run(...ids);
    log.run(...ids);
    db.exec('COMMIT');
  }
  if (isEmpty) for (const name of AFTERWARDS) db.exec(ownSql.get(name));
  db.close();
}

function known(mirror) {
  const db = open(mirror);
  const after = db
    .prepare(
      `SELECT max(id), CAST(group_concat(body, ',') AS BLOB) FROM (SELECT id, body FROM products WHERE id > ? LIMIT 1000)`,
    )
    .raw();
  for (let id = 0; id !== null; ) [id] = after.get(id);
  db.close();
}

function threads(mirror) {
  const db = open(mirror);
  if (!isMainThread) return;
  db.prepare('SELECT count(body) FROM products').get();
  const worker = new Worker(fileURLToPath(import.meta.url), { workerData: ['threads', mirror] });
  worker.on('exit', () => db.close());
}

const VERBS = { read, meanwhile, known, columns, write, threads };
const [what, ...given] = isMainThread ? process.argv.slice(2) : workerData;
await VERBS[what](...given);
