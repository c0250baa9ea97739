import type { Database } from 'better-sqlite3';
import { revert } from '../catalog/content.ts';
import { addedOf, type ChangeRow, type HeadedChange } from './changes.ts';
import { createQueries } from './queries.ts';

type Removal = Pick<HeadedChange, 'seq' | 'headSeq'> & { readonly body: string };
type Link = Pick<ChangeRow, 'prevSeq' | 'before'> & { readonly added: string | null };

/** Removals per transaction, so that memory stays flat. */
const BATCH = 500;

/**
 * Completes records of removals that were restored later, written by versions that did not keep the last known product
 * (see products.ts). Reads only columns that every version of the schema has, and can be repeated.
 */
export function keepRemovedProducts(sqlite: Database): void {
  const { row, rows, write } = createQueries(sqlite);
  const incomplete = rows<[seq: number], Removal>(
    `SELECT changes.seq, products.changed_seq AS headSeq, products.body
       FROM changes JOIN products ON products.id = changes.product_id
     WHERE changes.seq > ? AND changes.op = 2 AND changes.before = '{}' AND products.changed_seq <> changes.seq
     ORDER BY changes.seq LIMIT ${BATCH}`,
  );
  const link = row<[seq: number], Link>('SELECT prev_seq AS prevSeq, before, added FROM changes WHERE seq = ?');
  const keep = write('UPDATE changes SET before = ? WHERE seq = ?');

  /** Undefined if the log no longer leads back to the removal. */
  function lastKnown({ seq, headSeq, body }: Removal): string | undefined {
    let known = body;
    for (let at: number | null = headSeq; at !== null && at !== seq; ) {
      const change: Link | undefined = link(at);
      if (change === undefined) return undefined;
      if (change.before !== null) known = revert(known, { before: change.before, added: addedOf(change.added) });
      at = change.prevSeq;
    }
    return known;
  }

  const completeAfter = sqlite.transaction((after: number): number => {
    const removals = incomplete(after);
    for (const removal of removals) {
      const body = lastKnown(removal);
      if (body !== undefined) keep(body, removal.seq);
    }
    return removals.length < BATCH ? 0 : (removals.at(-1)?.seq ?? 0);
  });

  for (let after = completeAfter.immediate(0); after > 0; ) after = completeAfter.immediate(after);
}
