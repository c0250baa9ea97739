/**
 * An example of a program that keeps its own copy of what a shop sells, without HTTP and without SQL:
 *
 *   node examples/shop-index.mjs data/catalog.db
 *
 * It reads the mirror next to a running catchword, prints a line for each change, and ends with Ctrl+C.
 */
import { openMirror } from 'catchword/mirror';

const ending = new AbortController();
process.once('SIGINT', () => ending.abort());
process.once('SIGTERM', () => ending.abort());

const mirror = openMirror(process.argv[2] ?? 'data/catalog.db');
const titles = new Map();

function keep(vbid, product) {
  // A withdrawn product must not be sold. Rights, dates and formats decide, too: docs/sql.md, "What may be sold".
  if (product === null || product.distributable === false) titles.delete(vbid);
  else titles.set(vbid, product.title ?? vbid);
}

// What changes while all products are read comes after this number.
const start = mirror.lastSeq();
for await (const batch of mirror.products({ batch: 1000 })) {
  for (const { vbid, product } of batch) keep(vbid, product);
}
console.log(`${titles.size} products to sell`);

for await (const { data } of mirror.changes({ after: start, follow: true, signal: ending.signal })) {
  keep(data.vbid, data.product);
  console.log(`${data.op} ${data.vbid}: ${titles.size} products to sell`);
}
mirror.close();
