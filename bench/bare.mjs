// What users would write: fetch, JSON.parse, INSERT. Eight loops, one transaction for each page.
//
//   node bare.mjs <address> <pages> <file> [upsert | lines]
//
// upsert  with ON CONFLICT and a flush for each page, so that it can be repeated and survives a power failure
// lines   prints the items as NDJSON instead, for another program
import Database from 'better-sqlite3';

const [address, pages, file, mode] = process.argv.slice(2);
const headers = { 'X-Service-API-Key': 'SANDBOXKEY', 'X-Service-Access-Token': 'sandboxtoken' };

/** Returns what stores a page. */
function inFile() {
  const db = new Database(file);
  db.pragma('journal_mode = WAL');
  if (mode === 'upsert') db.pragma('synchronous = FULL');
  db.exec('CREATE TABLE IF NOT EXISTS products (vbid TEXT PRIMARY KEY, body TEXT)');
  const insert = db.prepare(
    mode === 'upsert'
      ? 'INSERT INTO products VALUES (?, ?) ON CONFLICT (vbid) DO UPDATE SET body = excluded.body'
      : 'INSERT OR REPLACE INTO products VALUES (?, ?)',
  );
  const store = db.transaction((items) => {
    for (const item of items) insert.run(item.vbid, JSON.stringify(item));
  });
  return { store, close: () => db.close() };
}

const lines = {
  store: (items) => {
    process.stdout.write(items.map((item) => `${JSON.stringify(item)}\n`).join(''));
  },
  close: () => {},
};

const startedAt = performance.now();
const { store, close } = mode === 'lines' ? lines : inFile();
let next = 1;
async function loop() {
  while (next <= Number(pages)) {
    const page = next++;
    const response = await fetch(`${address}/v4/products?page=${page}&per_page=1000`, { headers });
    store((await response.json()).items);
  }
}
await Promise.all(Array.from({ length: 8 }, loop));
const ms = performance.now() - startedAt;
close();
if (mode !== 'lines') process.stdout.write(`${JSON.stringify({ ms })}\n`);
