/**
 * Measures what a view costs a file: an initial load of every product, of a tenth of them, and of two members; then a night
 * in which every price changes. `npx tsx bench/views.ts [products]`, default 1,000,000 of 1.7 kB; needs 10 kB of disk for
 * each, and takes some minutes.
 */

import { statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { systemClock } from '../src/base/clock.ts';
import { createLog } from '../src/base/log.ts';
import { difference } from '../src/catalog/content.ts';
import { productOf } from '../src/catalog/product.ts';
import { startRelay } from '../src/relay/relay.ts';
import { sinkConfig } from '../src/relay/sink-config.ts';
import { size, table } from '../src/report/text.ts';
import { writeUnder } from '../src/store/schema/lease.ts';
import type { KeeperWriter } from '../src/store/schema/writers.ts';
import { openStore, type Store } from '../src/store/store.ts';
import { inDirectory, print } from './process.ts';

const ITEMS = Number(process.argv[2] ?? 1_000_000);
/** Products per transaction. */
const PAGE = 2_000;
const TEXT = 'A history of bridges. '.repeat(64);
const VIEWS = [
  ['whole products', {}],
  ["where: format = 'epub'", { where: "format = 'epub'" }],
  ['fields: title', { fields: 'title' }],
] as const;

function body(vbid: string, item: number, price: number): string {
  const prices = ['EUR', 'USD'].map(
    (currency) => `{"type":"digital_list_price","currency":"${currency}","value":${price}.50}`,
  );
  const format = item % 10 === 0 ? 'epub' : 'pdf';
  return `{"vbid":"${vbid}","title":"Bridges ${item}","format":"${format}","metadata":{"description":"${TEXT}"},"variants":[{"sku":"${vbid}","prices":[${prices.join(',')}]}]}`;
}

function write({ products, changes }: KeeperWriter, item: number, price: number, nowMs: number): void {
  const vbid = String(9_780_000_000_000 + item);
  const text = body(vbid, item, price);
  const product = productOf(vbid, JSON.parse(text) as Record<string, unknown>, text);
  const known = products.find(vbid);
  const seq = changes.lastSeq() + 1;
  if (known === undefined) {
    const id = products.lastId() + 1;
    products.insert([{ id, seq, product }], nowMs);
    changes.appendCreated(seq, id, 1, 1, nowMs);
    products.addLiving(1);
    return;
  }
  products.update(known, product, seq, nowMs);
  const change = {
    seq,
    op: 'updated',
    productId: known.id,
    prevSeq: known.changedSeq,
    ...difference(known.body, text),
  } as const;
  changes.append([change], 1, nowMs);
}

/** Gives every product this price. */
function setPrices({ keeperLease }: Store, price: number): void {
  for (let from = 0; from < ITEMS; from += PAGE) {
    writeUnder(keeperLease, Date.now(), (writer) => {
      for (let item = from; item < Math.min(ITEMS, from + PAGE); item++) write(writer, item, price, Date.now());
    });
  }
}

/** Feeds a file until it has everything. @returns a row of the table */
async function feed(store: Store, directory: string, what: string, [name, view]: (typeof VIEWS)[number]) {
  const id = `sink${VIEWS.findIndex(([one]) => one === name)}`;
  const path = join(directory, `${id}.jsonl`);
  const sink = sinkConfig({ env: 'SINK', name: id, url: `jsonl:${path}`, secret: undefined, ...view });
  const before = store.sinks.get(id)?.delivered ?? 0;
  const startedAt = performance.now();
  const log = createLog('silent');
  const removalLimit = (): number => ITEMS;
  const relay = startRelay({ store, sinks: [sink], clock: systemClock, log, source: 'http://127.0.0.1', removalLimit });
  while (store.sinks.get(id)?.cursor !== store.changes.lastSeq()) await delay(20);
  const took = performance.now() - startedAt;
  await relay.stop();
  const events = (store.sinks.get(id)?.delivered ?? 0) - before;
  return [what, name, `${(took / 1e3).toFixed(2)} s`, String(events), size(statSync(path).size)];
}

await inDirectory(async (directory) => {
  const store = openStore(join(directory, 'catalog.db'));
  const rows: string[][] = [];
  for (const [price, what] of ['initial load', 'a night of price changes'].entries()) {
    setPrices(store, price);
    for (const view of VIEWS) rows.push(await feed(store, directory, what, view));
  }
  store.close();
  print(table(['', 'view', 'time', 'events', 'file then'], rows));
});
