import type { Database } from 'better-sqlite3';
import type { ChangeOp } from '../catalog/run.ts';

/** Ordered by their numbers in the table. */
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

/** A record with the current state of its product. */
export interface HeadedChange extends ChangeRow {
  /** The product's newest change, and its body after that change. */
  readonly headSeq: number;
  readonly headBody: string;
}

export type NewChange = Omit<ChangeRow, 'at' | 'runId' | 'vbid'>;

export interface ChangeReader {
  /** The newest `seq` ever assigned, 0 for none; only the keeper may count on from it. */
  lastSeq(): number;
  get(seq: number): ChangeRow | undefined;
  /** Records after `seq`, oldest first. */
  after(seq: number, limit: number): HeadedChange[];
  /**
   * Of the records after `seq` up to `toSeq`, oldest first: those that are their product's newest, and those whose
   * product has changed after `asOfSeq` (use `chain` to find out whether they were the newest as of then).
   */
  newest(seq: number, toSeq: number, asOfSeq: number, limit: number): HeadedChange[];
  /** A product's records from `headSeq` back to the oldest one kept, newest first. */
  chain(headSeq: number): ChangeRow[];
  /** When a change was recorded, milliseconds since 1970; undefined if the log does not hold it. */
  timeOf(seq: number): number | undefined;
  /** Up to this `seq` the log holds only each product's newest change as of then; 0 if nothing was pruned. */
  prunedTo(): number;
  /**
   * Of the records after `seq`, at most `limit`: the last one before the first that is younger than `beforeMs`; `seq`
   * if there is none. Ignores records dated after `nowMs`: a clock that was ahead made them, so the next record tells
   * their age.
   */
  lastBefore(seq: number, beforeMs: number, nowMs: number, limit: number): number;
}

export interface ChangeWriter extends ChangeReader {
  append(changes: readonly NewChange[], runId: number, atMs: number): void;
  /** Records `count` creations at once: of products from `firstId` on, as records from `firstSeq` on. */
  appendCreated(firstSeq: number, firstId: number, count: number, runId: number, atMs: number): void;
  /**
   * Drops records up to `toSeq` that are superseded by another one up to there. Keeps each product's newest one: a new
   * sink is filled from these. The cost depends only on the records since the last call.
   * @returns the dropped ones
   */
  prune(toSeq: number): number[];
}

interface Raw extends Omit<ChangeRow, 'op' | 'added'> {
  readonly op: number;
  readonly added: string | null;
}

/** The columns of HEADED. Reading a million rows as arrays costs half as much as reading them as objects. */
type HeadedRaw = [
  number,
  number,
  number,
  number,
  string,
  number,
  number | null,
  string | null,
  string | null,
  number,
  string,
];

const HEADED = `SELECT changes.seq, changes.at, changes.run_id, changes.op, products.vbid, changes.product_id,
  changes.prev_seq, changes.before, changes.added, products.changed_seq, products.body
  FROM changes JOIN products ON products.id = changes.product_id`;

const SELECT = `SELECT changes.seq, changes.at, changes.run_id AS runId, changes.op, products.vbid,
  changes.product_id AS productId, changes.prev_seq AS prevSeq, changes.before, changes.added
  FROM changes JOIN products ON products.id = changes.product_id`;

const NONE: readonly string[] = [];

function addedOf(text: string | null): readonly string[] {
  return text === null ? NONE : (JSON.parse(text) as string[]);
}

function rowOf(raw: Raw): ChangeRow {
  return { ...raw, op: OPS[raw.op] ?? 'updated', added: addedOf(raw.added) };
}

/** Reads by index into one literal: destructuring and spreading cost three times as much as reading the row. */
function headedOf(raw: HeadedRaw): HeadedChange {
  return {
    seq: raw[0],
    at: raw[1],
    runId: raw[2],
    op: OPS[raw[3]] ?? 'updated',
    vbid: raw[4],
    productId: raw[5],
    prevSeq: raw[6],
    before: raw[7],
    added: addedOf(raw[8]),
    headSeq: raw[9],
    headBody: raw[10],
  };
}

export function createChangeReader(sqlite: Database): ChangeReader {
  const lastSeq = sqlite.prepare<[], number>("SELECT seq FROM sqlite_sequence WHERE name = 'changes'").pluck();
  const get = sqlite.prepare<[number], Raw>(`${SELECT} WHERE changes.seq = ?`);
  const after = sqlite
    .prepare<[number, number], HeadedRaw>(`${HEADED} WHERE changes.seq > ? ORDER BY changes.seq LIMIT ?`)
    .raw();
  const newest = sqlite
    .prepare<[number, number, number, number], HeadedRaw>(
      `${HEADED} WHERE changes.seq > ? AND changes.seq <= ?
         AND (products.changed_seq = changes.seq OR products.changed_seq > ?) ORDER BY changes.seq LIMIT ?`,
    )
    .raw();
  const timeOf = sqlite.prepare<[number], number>('SELECT at FROM changes WHERE seq = ?').pluck();
  const prunedTo = sqlite.prepare<[], number>('SELECT pruned_to FROM mirror WHERE id = 1').pluck();
  const times = sqlite
    .prepare<[number, number, number], [number, number]>(
      'SELECT seq, at FROM changes WHERE seq > ? AND at <= ? ORDER BY seq LIMIT ?',
    )
    .raw();

  return {
    lastSeq: () => lastSeq.get() ?? 0,
    get: (seq) => {
      const raw = get.get(seq);
      return raw === undefined ? undefined : rowOf(raw);
    },
    after: (seq, limit) => after.all(seq, limit).map(headedOf),
    newest: (seq, toSeq, asOfSeq, limit) => newest.all(seq, toSeq, asOfSeq, limit).map(headedOf),
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
    timeOf: (seq) => timeOf.get(seq),
    prunedTo: () => prunedTo.get() ?? 0,
    lastBefore: (seq, beforeMs, nowMs, limit) => {
      let last = seq;
      for (const [found, at] of times.all(seq, nowMs, limit)) {
        if (at >= beforeMs) break;
        last = found;
      }
      return last;
    },
  };
}

export function createChangeWriter(sqlite: Database, reader: ChangeReader): ChangeWriter {
  const insert = sqlite.prepare(
    `INSERT INTO changes (seq, at, run_id, op, product_id, prev_seq, before, added) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const insertCreated = sqlite.prepare(
    `WITH RECURSIVE step (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM step LIMIT :count)
     INSERT INTO changes (seq, at, run_id, op, product_id) SELECT :seq + n, :at, :run, 0, :id + n FROM step`,
  );
  const setPrunedTo = sqlite.prepare('UPDATE mirror SET pruned_to = ? WHERE id = 1');
  const dropFollowed = sqlite
    .prepare<[number, number], number>(
      `DELETE FROM changes WHERE seq IN
         (SELECT prev_seq FROM changes WHERE seq > ? AND seq <= ? AND prev_seq IS NOT NULL) RETURNING seq`,
    )
    .pluck();

  return {
    ...reader,
    append: (changes, runId, atMs) => {
      for (const { seq, op, productId, prevSeq, before, added } of changes) {
        const addedText = added.length === 0 ? null : JSON.stringify(added);
        insert.run(seq, atMs, runId, OPS.indexOf(op), productId, prevSeq, before, addedText);
      }
    },
    appendCreated: (firstSeq, firstId, count, runId, atMs) => {
      if (count > 0) insertCreated.run({ seq: firstSeq, id: firstId, count, run: runId, at: atMs });
    },
    prune: (toSeq) => {
      const dropped = dropFollowed.all(reader.prunedTo(), toSeq);
      setPrunedTo.run(toSeq);
      return dropped;
    },
  };
}
