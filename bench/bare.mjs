// The script that users would write: fetch, JSON.parse, INSERT. Eight loops, one transaction for each page.
// usage: node bare.mjs <address> <pages> <file>
import Database from 'better-sqlite3';

const [address, pages, file] = process.argv.slice(2);
const headers = { 'X-Service-API-Key': 'SANDBOXKEY', 'X-Service-Access-Token': 'sandboxtoken' };
const db = new Database(file);
db.pragma('journal_mode = WAL');
db.exec('CREATE TABLE products (vbid TEXT PRIMARY KEY, body TEXT)');
const insert = db.prepare('INSERT OR REPLACE INTO products VALUES (?, ?)');
const insertPage = db.transaction((items) => {
  for (const item of items) insert.run(item.vbid, JSON.stringify(item));
});

const startedAt = performance.now();
let next = 1;
async function loop() {
  while (next <= Number(pages)) {
    const page = next++;
    const response = await fetch(`${address}/v4/products?page=${page}&per_page=1000`, { headers });
    insertPage((await response.json()).items);
  }
}
await Promise.all(Array.from({ length: 8 }, loop));
const ms = performance.now() - startedAt;
db.close();
process.stdout.write(`${JSON.stringify({ ms })}\n`);
