import type { Database } from 'better-sqlite3';
import type { IdSet } from '../catalog/id-set.ts';
import type { ChangeWriter, NewChange } from './changes.ts';
import type { ProductReader, ProductWriter } from './products.ts';

/** A product that a held run would remove. */
export interface HeldProduct {
  readonly id: number;
  readonly vbid: string;
  readonly title: string | null;
}

/** A living product that may have to be removed. */
export interface Candidate extends HeldProduct {
  readonly body: string;
}

/** Products that runs did not see: candidates, missing products and held removals. */
export interface RemovalReader {
  /** Living products that `seen` does not hold, by id. */
  unseen(seen: IdSet): number[];
  /** Undefined for a tombstone. */
  candidate(id: number): Candidate | undefined;
  /** Living products that are neither missing nor held: lookups are trusted only if they find one of these. */
  controls(limit: number): Candidate[];
  /** How many full runs in a row did not see the product. */
  missingRuns(id: number): number;
  /** Living products that the held run would remove, by id; the first `limit` of them. */
  held(runId: number, limit?: number): HeldProduct[];
  heldCount(runId: number): number;
}

export interface RemovalWriter extends RemovalReader {
  /** Turns living products into tombstones, each with a `removed` change. @returns how many were living */
  remove(ids: Iterable<number>, runId: number, atMs: number): number;
  /** Restores products that `runId` removed and that have not changed since. @returns how many */
  restore(runId: number, atMs: number): number;
  /** Notes that a full run did not see these products, and clears the count of all others. */
  noteMissing(ids: readonly number[]): void;
  /** Notes that these products were seen: they are not missing, and no held run may remove them. */
  noteSeen(ids: Iterable<readonly number[]>): void;
  hold(runId: number, ids: Iterable<number>): void;
  /** Drops the run's list of held removals. */
  release(runId: number): void;
  /** Takes products off the run's list. */
  spare(runId: number, ids: Iterable<number>): void;
}

/** The `seq` of a living product's newest change. */
function prepareHead(sqlite: Database) {
  return sqlite
    .prepare<[number], number>('SELECT changed_seq FROM products WHERE id = ? AND removed_at IS NULL')
    .pluck();
}

export function createRemovalReader(sqlite: Database, products: ProductReader): RemovalReader {
  const candidate = sqlite.prepare<[number], Candidate>(
    'SELECT id, vbid, title, body FROM products WHERE id = ? AND removed_at IS NULL',
  );
  const head = prepareHead(sqlite);
  const missingRuns = sqlite.prepare<[number], number>('SELECT runs FROM missing WHERE product_id = ?').pluck();
  const held = sqlite.prepare<[number, number], HeldProduct>(
    `SELECT products.id, products.vbid, products.title FROM held_removals
       JOIN products ON products.id = held_removals.product_id
     WHERE held_removals.run_id = ? AND products.removed_at IS NULL ORDER BY products.id LIMIT ?`,
  );
  const heldCount = sqlite
    .prepare<[number], number>(
      `SELECT count(*) FROM held_removals JOIN products ON products.id = held_removals.product_id
       WHERE held_removals.run_id = ? AND products.removed_at IS NULL`,
    )
    .pluck();
  const controls = sqlite.prepare<[number], Candidate>(
    `SELECT id, vbid, title, body FROM products
     WHERE removed_at IS NULL AND id NOT IN (SELECT product_id FROM missing)
       AND id NOT IN (SELECT product_id FROM held_removals)
       AND coalesce(json_extract(body, '$.distributable'), 1) NOT IN (0, 'false')
     ORDER BY id DESC LIMIT ?`,
  );

  return {
    unseen: (seen) => {
      const ids: number[] = [];
      const last = products.lastId();
      for (let id = 1; id <= last; id++) {
        if (!seen.has(id) && head.get(id) !== undefined) ids.push(id);
      }
      return ids;
    },
    candidate: (id) => candidate.get(id),
    controls: (limit) => controls.all(limit),
    missingRuns: (id) => missingRuns.get(id) ?? 0,
    held: (runId, limit = -1) => held.all(runId, limit),
    heldCount: (runId) => heldCount.get(runId) ?? 0,
  };
}

export function createRemovalWriter(
  sqlite: Database,
  reader: RemovalReader,
  products: ProductWriter,
  changes: ChangeWriter,
): RemovalWriter {
  const head = prepareHead(sqlite);
  const removedBy = sqlite
    .prepare<[number], [number, number]>(
      `SELECT changes.product_id, changes.seq FROM changes
         JOIN products ON products.id = changes.product_id AND products.changed_seq = changes.seq
       WHERE changes.run_id = ? AND changes.op = 2 ORDER BY changes.seq`,
    )
    .raw();
  const addMissing = sqlite.prepare(
    'INSERT INTO missing (product_id, runs) VALUES (?, 1) ON CONFLICT (product_id) DO UPDATE SET runs = runs + 1',
  );
  const allMissing = sqlite.prepare<[], number>('SELECT product_id FROM missing').pluck();
  const dropMissing = sqlite.prepare('DELETE FROM missing WHERE product_id = ?');
  const dropHeldProduct = sqlite.prepare('DELETE FROM held_removals WHERE product_id = ?');
  const noted = sqlite
    .prepare<[], number>('SELECT product_id FROM missing UNION SELECT product_id FROM held_removals')
    .pluck();
  const addHeld = sqlite.prepare('INSERT OR IGNORE INTO held_removals (run_id, product_id) VALUES (?, ?)');
  const dropHeld = sqlite.prepare('DELETE FROM held_removals WHERE run_id = ?');
  const spare = sqlite.prepare('DELETE FROM held_removals WHERE run_id = ? AND product_id = ?');

  return {
    ...reader,
    remove: (ids, runId, atMs) => {
      const records: NewChange[] = [];
      let seq = changes.lastSeq();
      for (const id of ids) {
        const prevSeq = head.get(id);
        if (prevSeq === undefined) continue;
        seq++;
        products.bury(id, seq, atMs);
        records.push({ seq, op: 'removed', productId: id, prevSeq, before: '{}', added: [] });
      }
      changes.append(records, runId, atMs);
      products.addLiving(-records.length);
      return records.length;
    },
    restore: (runId, atMs) => {
      const records: NewChange[] = [];
      let seq = changes.lastSeq();
      for (const [id, prevSeq] of removedBy.all(runId)) {
        seq++;
        products.revive(id, seq, atMs);
        records.push({ seq, op: 'restored', productId: id, prevSeq, before: '{}', added: [] });
      }
      changes.append(records, runId, atMs);
      products.addLiving(records.length);
      return records.length;
    },
    noteMissing: (ids) => {
      const now = new Set(ids);
      for (const id of allMissing.all()) if (!now.has(id)) dropMissing.run(id);
      for (const id of ids) addMissing.run(id);
    },
    noteSeen: (pages) => {
      const waiting = new Set(noted.all());
      if (waiting.size === 0) return;
      for (const ids of pages) {
        for (const id of ids) {
          if (!waiting.delete(id)) continue;
          dropMissing.run(id);
          dropHeldProduct.run(id);
        }
      }
    },
    hold: (runId, ids) => {
      for (const id of ids) addHeld.run(runId, id);
    },
    release: (runId) => dropHeld.run(runId),
    spare: (runId, ids) => {
      for (const id of ids) spare.run(runId, id);
    },
  };
}
