/**
 * Measures what a view costs a file: an initial load of every product, of a tenth of them, and of two members; then a night
 * in which every price changes. `npx tsx bench/views.ts [products]`, default 1,000,000 of 1.7 kB; needs 10 kB of disk for
 * each, and takes some minutes.
 */

import { statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { systemClock } from '@catchword/base/clock';
import { createLog } from '@catchword/base/log';
import { startRelay } from '../src/relay/relay.ts';
import { sinkConfig } from '../src/relay/sink-config.ts';
import { size, table } from '../src/report/text.ts';
import { openStore, type Store } from '../src/store/store.ts';
import { inDirectory, print } from './process.ts';
import { setPrices } from './products.ts';

const ITEMS = Number(process.argv[2] ?? 1_000_000);
const VIEWS = [
  ['whole products', {}],
  ["where: format = 'epub'", { where: "format = 'epub'" }],
  ['fields: title', { fields: 'title' }],
] as const;

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
    setPrices(store, 0, ITEMS, price);
    for (const view of VIEWS) rows.push(await feed(store, directory, what, view));
  }
  store.close();
  print(table(['', 'view', 'time', 'events', 'file then'], rows));
});
