import { changedPointers, difference, type Pointer, sameContent } from '../catalog/content.ts';
import type { ProductRow } from '../store/rows/product-rows.ts';
import type { Reader } from '../store/schema/reader.ts';

type Living = Pick<ProductRow, 'vbid' | 'title' | 'body'>;

/** A difference between two mirrors in one product. */
export type Disagreement =
  | (Living & { readonly kind: 'only-here' | 'only-there' })
  | (Omit<Living, 'body'> & { readonly kind: 'differs'; readonly fields: readonly string[] });

function living(row: ProductRow | undefined): ProductRow | undefined {
  return row?.removedAt === null ? row : undefined;
}

/**
 * Yields every difference between a mirror and a copy of it that was brought up to date, ordered by key. Reads only what
 * the copy has changed.
 * @param copiedAt the newest change when the copy was made
 */
export function* compareMirrors(
  here: Reader,
  there: Reader,
  ignoreFields: readonly Pointer[],
  copiedAt: number,
): Generator<Disagreement> {
  for (const vbid of there.products.changedAfter(copiedAt)) {
    const [a, b] = [living(here.products.get(vbid)), living(there.products.get(vbid))];
    if (a !== undefined && b !== undefined) {
      if (sameContent(a.body, b.body, ignoreFields)) continue;
      yield { kind: 'differs', vbid, title: b.title, fields: changedPointers(difference(a.body, b.body)) };
    } else if (a !== undefined) yield { kind: 'only-here', vbid, title: a.title, body: a.body };
    else if (b !== undefined) yield { kind: 'only-there', vbid, title: b.title, body: b.body };
  }
}
