import { difference } from '@catchword/catalog/content';
import { productOf } from '@catchword/catalog/product';
import { writeUnder } from '../src/store/schema/lease.ts';
import type { KeeperWriter } from '../src/store/schema/writers.ts';
import type { Store } from '../src/store/store.ts';

/** Products per transaction. */
const PAGE = 2_000;
const TEXT = 'A history of bridges. '.repeat(64);

export function keyOf(item: number): string {
  return String(9_780_000_000_000 + item);
}

function body(vbid: string, item: number, price: number): string {
  const prices = ['EUR', 'USD'].map(
    (currency) => `{"type":"digital_list_price","currency":"${currency}","value":${price}.50}`,
  );
  const format = item % 10 === 0 ? 'epub' : 'pdf';
  return `{"vbid":"${vbid}","title":"Bridges ${item}","format":"${format}","metadata":{"description":"${TEXT}"},"variants":[{"sku":"${vbid}","prices":[${prices.join(',')}]}]}`;
}

function write({ products, changes }: KeeperWriter, item: number, price: number, nowMs: number): void {
  const vbid = keyOf(item);
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

/** Gives this price to the products from `first` to before `end`, each of 1.7 kB, as a run of the daemon does. */
export function setPrices({ keeperLease }: Store, first: number, end: number, price: number): void {
  for (let from = first; from < end; from += PAGE) {
    writeUnder(keeperLease, Date.now(), (writer) => {
      for (let item = from; item < Math.min(end, from + PAGE); item++) write(writer, item, price, Date.now());
    });
  }
}
