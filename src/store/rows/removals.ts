import type { IdSet } from '@catchword/catalog/id-set';
import { listed, type Queries } from '../schema/queries.ts';
import type { ChangeWriter, NewChange } from './changes.ts';
import type { ProductReader, ProductRow, ProductWriter } from './product-rows.ts';

/** A product that a held run would remove. */
export type HeldProduct = Pick<ProductRow, 'id' | 'vbid' | 'title'>;

/** The same for a person who decides about it. */
export type HeldRow = Pick<ProductRow, 'id' | 'vbid' | 'title'> & {
  readonly publisher: string | null;
  readonly withdrawn: 0 | 1;
};

/** A value that products of a sample have in common, and how many have it. */
export type HeldPart = [value: string | null, products: number];

type LivingProduct = Pick<ProductRow, 'id' | 'vbid' | 'title' | 'body'>;

const HELD = `FROM held_removals JOIN products ON products.id = held_removals.product_id
  WHERE held_removals.run_id = ? AND products.removed_at IS NULL`;

/** A product, and its newest change. */
type Head = [id: number, seq: number];

export type RemovalReader = ReturnType<typeof createRemovalReader>;

/** Reads products that runs did not see: those that may have to be removed, missing products and held removals. */
export function createRemovalReader({ row, rows, tuples, value, number }: Queries, products: ProductReader) {
  const isLiving = value<[number], number>('SELECT 1 FROM products WHERE id = ? AND removed_at IS NULL');
  const held = rows<[number, number], HeldProduct>(
    `SELECT products.id, products.vbid, products.title ${HELD} ORDER BY products.id LIMIT ?`,
  );
  const heldCount = number<[runId: number, limit: number]>(`SELECT count(*) FROM (SELECT 1 ${HELD} LIMIT ?)`);
  const heldBy = (value: string) =>
    tuples<[runId: number, step: number], HeldPart>(
      `SELECT ${value}, count(*) AS products ${HELD} AND held_removals.rowid % ? = 0 GROUP BY 1 ORDER BY 2 DESC`,
    );

  return {
    /** Living products that `seen` does not hold, by id. */
    unseen: (seen: IdSet): number[] => {
      const ids: number[] = [];
      const last = products.lastId();
      for (let id = 1; id <= last; id++) if (!seen.has(id) && isLiving(id) !== null) ids.push(id);
      return ids;
    },
    living: row<[id: number], LivingProduct>(
      'SELECT id, vbid, title, body FROM products WHERE id = ? AND removed_at IS NULL',
    ),
    /** Living products that are neither missing nor held: lookups are trusted only if they find one of these. */
    controls: rows<[limit: number], LivingProduct>(
      `SELECT id, vbid, title, body FROM products
       WHERE removed_at IS NULL AND id NOT IN (SELECT product_id FROM missing)
         AND id NOT IN (SELECT product_id FROM held_removals)
         AND NOT withdrawn
       ORDER BY id DESC LIMIT ?`,
    ),
    /** How many full runs in a row did not see the product. */
    missingRuns: number<[id: number]>('SELECT runs FROM missing WHERE product_id = ?'),
    /** Living products that the held run would remove, by id; the first `limit` of them. */
    held: (runId: number, limit = -1) => held(runId, limit),
    /** At most `limit` of them, with ids above `after`. */
    heldAfter: rows<[runId: number, after: number, limit: number], HeldRow>(
      `SELECT products.id, products.vbid, ${listed('title')}, ${listed('publisher')}, products.withdrawn ${HELD}
         AND held_removals.product_id > ? ORDER BY held_removals.product_id LIMIT ?`,
    ),
    /** What every `step`-th of them has in common, the most frequent values first. */
    heldBy: {
      Publishers: heldBy(listed('publisher', 'value')),
      Formats: heldBy(listed('format', 'value')),
      'Last changed': heldBy("strftime('%Y-%m', products.changed_at / 1000, 'unixepoch') AS value"),
    },
    /** The same with products that were removed since; it reads no product, so 100,000 take 2 ms. */
    heldListed: number<[runId: number]>('SELECT count(*) FROM held_removals WHERE run_id = ?'),
    /** Counts at most `limit`. */
    heldCount: (runId: number, limit = -1) => heldCount(runId, limit),
  };
}

export type RemovalWriter = ReturnType<typeof createRemovalWriter>;

export function createRemovalWriter(
  { tuples, values, write }: Queries,
  reader: RemovalReader,
  products: ProductWriter,
  changes: ChangeWriter,
) {
  // CROSS JOIN, so that SQLite looks up each id.
  const livingOf = tuples<[ids: string], Head>(
    `SELECT DISTINCT products.id, changed_seq FROM json_each(?) CROSS JOIN products ON products.id = value
     WHERE removed_at IS NULL`,
  );
  const removedBy = tuples<[runId: number], Head>(
    `SELECT changes.product_id, changes.seq FROM changes
       JOIN products ON products.id = changes.product_id AND products.changed_seq = changes.seq
     WHERE changes.run_id = ? AND changes.op = 2 ORDER BY changes.seq`,
  );
  const addMissing = write(
    `INSERT INTO missing (product_id, runs) SELECT value, 1 FROM json_each(?) WHERE true
     ON CONFLICT (product_id) DO UPDATE SET runs = runs + 1`,
  );
  const keepMissing = write('DELETE FROM missing WHERE product_id NOT IN (SELECT value FROM json_each(?))');
  const dropMissing = write('DELETE FROM missing WHERE product_id = ?');
  const dropHeld = write('DELETE FROM held_removals WHERE product_id = ?');
  const noted = values<[], number>('SELECT product_id FROM missing UNION SELECT product_id FROM held_removals');
  const hold = write('INSERT OR IGNORE INTO held_removals (run_id, product_id) SELECT ?, value FROM json_each(?)');
  const spare = write('DELETE FROM held_removals WHERE run_id = ? AND product_id IN (SELECT value FROM json_each(?))');

  /** Removes or restores products, each with a record. @returns how many */
  function record(op: 'removed' | 'restored', heads: readonly Head[], runId: number, atMs: number): number {
    const change = op === 'removed' ? products.bury : products.revive;
    const firstSeq = changes.lastSeq() + 1;
    const records = heads.map(([productId, prevSeq], at): NewChange => {
      change(productId, firstSeq + at, atMs);
      return { seq: firstSeq + at, op, productId, prevSeq, before: '{}', added: [] };
    });
    changes.append(records, runId, atMs);
    products.addLiving(op === 'removed' ? -records.length : records.length);
    return records.length;
  }

  return {
    ...reader,
    /** Turns living products into tombstones, each with a `removed` change. @returns how many were living */
    remove: (ids: Iterable<number>, runId: number, atMs: number) =>
      record('removed', livingOf(JSON.stringify([...ids])), runId, atMs),
    /** Restores products that `runId` removed and that have not changed since. @returns how many */
    restore: (runId: number, atMs: number) => record('restored', removedBy(runId), runId, atMs),
    /** Notes that a full run did not see these products, and clears the count of all others. */
    noteMissing: (ids: readonly number[]): void => {
      keepMissing(JSON.stringify(ids));
      addMissing(JSON.stringify(ids));
    },
    /** Notes that these products were seen: they are not missing, and no held run may remove them. */
    noteSeen: (pages: Iterable<readonly number[]>): void => {
      const waiting = new Set(noted());
      if (waiting.size === 0) return;
      for (const ids of pages) {
        for (const id of ids) {
          if (!waiting.delete(id)) continue;
          dropMissing(id);
          dropHeld(id);
        }
      }
    },
    hold: (runId: number, ids: Iterable<number>) => hold(runId, JSON.stringify([...ids])),
    release: write<[runId: number]>('DELETE FROM held_removals WHERE run_id = ?'),
    spare: (runId: number, ids: Iterable<number>) => spare(runId, JSON.stringify([...ids])),
  };
}
