import type { Fields } from './field-values.ts';
import { STORED } from './fields.ts';
import { objectMembers } from './json-text.ts';
import { type Product, productOf } from './product.ts';

/**
 * The items of a validated page, packed: a thread hands them over without copying, and SQLite reads a whole page with one
 * statement. Binding a million bodies one by one took 5.2 µs each, comparing a page at a time took 1.1 (measured when both
 * were built).
 */
export interface PageItems {
  readonly count: number;
  /** The page as the source sent it, after content decoding; but each member of an item once. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Start and length in `bytes` of each item. */
  readonly spans: Uint32Array<ArrayBuffer>;
  /**
   * A JSON array with an array for each item, null for a rejected one: `vbid`, where the item's text starts in `bytes`,
   * counted from 1, and its length; if the rows are complete also its stored fields, whether it is withdrawn (0 or 1), and the four texts of `SearchText` if the product has any. Empty if the page
   * was compared with the mirror already (`Page.matched`). As text, or in SQLite's binary form, which SQLite need not parse.
   */
  readonly rows: string | Uint8Array<ArrayBuffer>;
  /** Whether SQLite can store the products from `rows` alone: then no product is on the page twice. */
  readonly isComplete: boolean;
  /** Indexes of columns that a complete row has and that are not null, or 0, in each of them. */
  readonly used: readonly number[];
  /** Whether any complete row has texts to search. */
  readonly hasWords: boolean;
  /** Positions of products that the source has withdrawn. */
  readonly withdrawn: readonly number[];
}

/** The JSON text of an item, exactly as the source sent it. */
export function bodyAt({ bytes, spans }: Pick<PageItems, 'bytes' | 'spans'>, position: number): string {
  const start = spans[2 * position] ?? 0;
  const { buffer, byteOffset } = bytes;
  return Buffer.from(buffer, byteOffset + start, spans[2 * position + 1] ?? 0).toString('utf8');
}

/** What `vbid` says: a number as the digits that were sent, because parsing could make two long numbers equal. */
export function keyOf({ vbid }: Fields, body: string): unknown {
  return typeof vbid === 'number' ? objectMembers(body).get('vbid') : vbid;
}

/** @param position of an item that was not rejected */
export function productAt(items: PageItems, position: number): Product {
  const body = bodyAt(items, position);
  const fields = JSON.parse(body) as Fields;
  return productOf(String(keyOf(fields, body)), fields, body);
}

/** Where a row of `PageItems` has its first stored field, whether the product is withdrawn, and its texts to search. */
export const ROW = { stored: 3, withdrawn: 3 + STORED.length, words: 4 + STORED.length };

interface ItemsOfPage {
  readonly items: PageItems;
  readonly rejected: readonly { readonly position: number }[];
}

/** One per item, in the order of the response; null for a rejected item. */
export function productsOf({ items, rejected }: ItemsOfPage): (Product | null)[] {
  const without = new Set(rejected.map(({ position }) => position));
  return Array.from({ length: items.count }, (_, at) => (without.has(at) ? null : productAt(items, at)));
}
