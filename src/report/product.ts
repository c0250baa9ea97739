import { iso } from '../iso-time.ts';
import type { ProductRow, SearchHit } from '../store/products.ts';

/**
 * A product as one JSON document. Bodies are inserted as the service sent them, so that no number is rounded.
 * @param history the texts of its change events
 */
export function productJson(row: ProductRow, history?: readonly string[]): string {
  const { id: _id, body, firstSeenAt, changedAt, changedSeq, removedAt, printIsbn, eIsbn, ...fields } = row;
  const head = JSON.stringify({
    ...fields,
    print_isbn: printIsbn,
    e_isbn: eIsbn,
    first_seen_at: iso(firstSeenAt),
    changed_at: iso(changedAt),
    changed_seq: changedSeq,
    removed_at: iso(removedAt),
  });
  const tail = history === undefined ? '' : `,"history":[${history.join(',')}]`;
  return `${head.slice(0, -1)},"body":${removedAt === null ? body : 'null'}${tail}}`;
}

export function hitJson({ printIsbn, eIsbn, ...hit }: SearchHit) {
  return { ...hit, print_isbn: printIsbn, e_isbn: eIsbn };
}
