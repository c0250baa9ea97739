import { changedPointers, difference, type Pointer, sameContent } from '../catalog/content.ts';
import type { Reader } from '../store/reader.ts';

/** A difference between two mirrors in one product. */
export type Disagreement =
  | { readonly kind: 'only-here'; readonly vbid: string; readonly title: string | null; readonly body: string }
  | { readonly kind: 'only-there'; readonly vbid: string; readonly title: string | null; readonly body: string }
  | {
      readonly kind: 'differs';
      readonly vbid: string;
      readonly title: string | null;
      readonly fields: readonly string[];
    };

interface Living {
  readonly vbid: string;
  readonly title: string | null;
  readonly body: string;
}

/**
 * Yields every difference between two mirrors, ordered by key. Memory does not grow with the catalog.
 * @param ignoreFields fields to ignore
 */
export function* compareMirrors(
  here: Reader,
  there: Reader,
  ignoreFields: readonly Pointer[],
): Generator<Disagreement> {
  const [ours, theirs] = [here.products.all(), there.products.all()];
  let [a, b] = [ours.next().value as Living | undefined, theirs.next().value as Living | undefined];
  while (a !== undefined || b !== undefined) {
    if (b === undefined || (a !== undefined && keyBefore(a.vbid, b.vbid))) {
      const { vbid, title, body } = a as Living;
      yield { kind: 'only-here', vbid, title, body };
      a = ours.next().value as Living | undefined;
    } else if (a === undefined || keyBefore(b.vbid, a.vbid)) {
      yield { kind: 'only-there', vbid: b.vbid, title: b.title, body: b.body };
      b = theirs.next().value as Living | undefined;
    } else {
      if (!sameContent(a.body, b.body, ignoreFields)) {
        yield { kind: 'differs', vbid: a.vbid, title: b.title, fields: changedPointers(difference(a.body, b.body)) };
      }
      a = ours.next().value as Living | undefined;
      b = theirs.next().value as Living | undefined;
    }
  }
}

/** Compares as SQLite does, by UTF-8 bytes: JavaScript compares UTF-16, which orders surrogates differently. */
function keyBefore(a: string, b: string): boolean {
  return Buffer.compare(Buffer.from(a), Buffer.from(b)) < 0;
}
