import type { Database } from 'better-sqlite3';
import type { ChangeOp } from '../catalog/run.ts';

/** In the order of their numbers in the table. */
const OPS: readonly ChangeOp[] = ['created', 'updated', 'removed', 'restored'];

/** One record of the change log. */
export interface ChangeRow {
  readonly seq: number;
  readonly at: number;
  readonly runId: number;
  readonly op: ChangeOp;
  readonly vbid: string;
  readonly productId: number;
  readonly prevSeq: number | null;
  readonly before: string | null;
  readonly added: readonly string[];
}

export interface NewChange {
  readonly seq: number;
  readonly op: ChangeOp;
  readonly productId: number;
  readonly prevSeq: number | null;
  readonly before: string | null;
  readonly added: readonly string[];
}

export interface ChangeStore {
  /** The newest `seq` ever given, 0 for none; only the single writer may count on from it. */
  lastSeq(): number;
  append(changes: readonly NewChange[], runId: number, atMs: number): void;
  /** Records `count` creations at once: products `firstId` on, records `firstSeq` on. */
  appendCreated(firstSeq: number, firstId: number, count: number, runId: number, atMs: number): void;
  get(seq: number): ChangeRow | undefined;
  /** Records after `seq`, oldest first. */
  after(seq: number, limit: number): ChangeRow[];
  /** A product's records from `headSeq` back to the oldest kept, newest first. */
  chain(headSeq: number): ChangeRow[];
}

interface Raw extends Omit<ChangeRow, 'op' | 'added'> {
  readonly op: number;
  readonly added: string | null;
}

const SELECT = `SELECT changes.seq, changes.at, changes.run_id AS runId, changes.op, products.vbid,
  changes.product_id AS productId, changes.prev_seq AS prevSeq, changes.before, changes.added
  FROM changes JOIN products ON products.id = changes.product_id`;

function rowOf(raw: Raw): ChangeRow {
  const added = raw.added === null ? [] : (JSON.parse(raw.added) as string[]);
  return { ...raw, op: OPS[raw.op] ?? 'updated', added };
}

export function createChangeStore(sqlite: Database): ChangeStore {
  const lastSeq = sqlite.prepare<[], number>("SELECT seq FROM sqlite_sequence WHERE name = 'changes'").pluck();
  const insert = sqlite.prepare(
    `INSERT INTO changes (seq, at, run_id, op, product_id, prev_seq, before, added) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const insertCreated = sqlite.prepare(
    `WITH RECURSIVE step (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM step LIMIT :count)
     INSERT INTO changes (seq, at, run_id, op, product_id) SELECT :seq + n, :at, :run, 0, :id + n FROM step`,
  );
  const get = sqlite.prepare<[number], Raw>(`${SELECT} WHERE changes.seq = ?`);
  const after = sqlite.prepare<[number, number], Raw>(`${SELECT} WHERE changes.seq > ? ORDER BY changes.seq LIMIT ?`);

  return {
    lastSeq: () => lastSeq.get() ?? 0,
    append: (changes, runId, atMs) => {
      for (const { seq, op, productId, prevSeq, before, added } of changes) {
        const addedText = added.length === 0 ? null : JSON.stringify(added);
        insert.run(seq, atMs, runId, OPS.indexOf(op), productId, prevSeq, before, addedText);
      }
    },
    appendCreated: (firstSeq, firstId, count, runId, atMs) => {
      if (count > 0) insertCreated.run({ seq: firstSeq, id: firstId, count, run: runId, at: atMs });
    },
    get: (seq) => {
      const raw = get.get(seq);
      return raw === undefined ? undefined : rowOf(raw);
    },
    after: (seq, limit) => after.all(seq, limit).map(rowOf),
    chain: (headSeq) => {
      const chain: ChangeRow[] = [];
      for (let seq: number | null = headSeq; seq !== null; ) {
        const raw = get.get(seq);
        if (raw === undefined) break;
        chain.push(rowOf(raw));
        seq = raw.prevSeq;
      }
      return chain;
    },
  };
}
