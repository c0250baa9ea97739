import { changedPointers, difference, type Pointer, sameContent } from '../catalog/content.ts';
import type { ProductRow } from '../store/rows/product-rows.ts';
import type { Reader } from '../store/schema/reader.ts';

type Living = Pick<ProductRow, 'vbid' | 'title' | 'body'>;

/** A difference between two mirrors in one product. */
export type Disagreement =
  | (Living & { readonly kind: 'only-here' | 'only-there' })
  | (Omit<Living, 'body'> & { readonly kind: 'differs'; readonly fields: readonly string[] });

/** Compares as SQLite does, by UTF-8 bytes: JavaScript compares UTF-16, which orders surrogates differently. */
function isBefore(one: Living | undefined, other: Living | undefined): one is Living {
  if (one === undefined || other === undefined) return one !== undefined;
  return Buffer.compare(Buffer.from(one.vbid), Buffer.from(other.vbid)) < 0;
}

/** Yields every difference between two mirrors, ordered by key. Memory does not grow with the catalog. */
export function* compareMirrors(
  here: Reader,
  there: Reader,
  ignoreFields: readonly Pointer[],
): Generator<Disagreement> {
  const [ours, theirs] = [here.products.all(), there.products.all()];
  const next = (products: Iterator<Living, void>): Living | undefined => products.next().value ?? undefined;
  let [a, b] = [next(ours), next(theirs)];
  while (a !== undefined || b !== undefined) {
    if (a !== undefined && a.vbid === b?.vbid) {
      if (!sameContent(a.body, b.body, ignoreFields)) {
        yield { kind: 'differs', vbid: a.vbid, title: b.title, fields: changedPointers(difference(a.body, b.body)) };
      }
      [a, b] = [next(ours), next(theirs)];
    } else if (isBefore(a, b)) {
      yield { kind: 'only-here', ...a };
      a = next(ours);
    } else if (b !== undefined) {
      yield { kind: 'only-there', ...b };
      b = next(theirs);
    }
  }
}
