import { randomBytes } from 'node:crypto';
import type { RecordedChange } from '@catchword/catalog/event';
import { objectMembers } from '@catchword/catalog/json-text';
import { type ChangeFilter, CHANGE_OPS as OPS } from '@catchword/catalog/run-types';
import { inRange, listed, type Queries, type Range } from '../schema/queries.ts';

/** One record of the change log. */
export interface ChangeRow extends Omit<RecordedChange, 'cause' | 'body'> {
  readonly productId: number;
  readonly prevSeq: number | null;
}

/** A record with the current state of its product. */
export interface HeadedChange extends ChangeRow {
  /** The product's newest change, and its body after that change. */
  readonly headSeq: number;
  readonly headBody: string;
}

/** A record of the log, and what a list of changes shows of its product. */
export interface ListedChange extends Pick<ChangeRow, 'seq' | 'at' | 'runId' | 'op' | 'vbid'> {
  /** The product's newest title. */
  readonly title: string | null;
  /** Names of the top-level fields that changed; null if their former values are too long to be read for a list. */
  readonly fields: readonly string[] | null;
}

export type NewChange = Omit<ChangeRow, 'at' | 'runId' | 'vbid' | 'era'>;

type Raw = Omit<ChangeRow, 'op' | 'added'> & { readonly op: number; readonly added: string | null };

/** The first columns of HEADED. */
type RawStart = [seq: number, at: number, runId: number, op: number, vbid: string, productId: number];
type HeadedRaw = [...RawStart, number | null, string | null, string | null, number, string];

/** SQL: the number of the newest change; 0 if there is none. */
export const LAST_SEQ = `coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'changes'), 0)`;

/** SQL: the era of a change, also of one that was pruned; null for 0. @param seq SQL */
export function eraSql(seq: string): string {
  return `(SELECT id FROM eras WHERE first_seq <= ${seq} ORDER BY first_seq DESC LIMIT 1)`;
}

/** SQL: whether a change is its product's newest one as of `:asOf`. */
export const NEWEST = `(products.changed_seq = changes.seq OR (products.changed_seq > :asOf AND changes.seq =
  (SELECT own.seq FROM changes AS own WHERE own.product_id = changes.product_id AND own.seq <= :asOf
   ORDER BY own.seq DESC LIMIT 1)))`;

const HEADED = `SELECT changes.seq, changes.at, changes.run_id, changes.op, products.vbid, changes.product_id,
  changes.prev_seq, changes.before, changes.added, products.changed_seq, products.body
  FROM changes JOIN products ON products.id = changes.product_id`;

/** SQL: whether a member changed that a list of the filter names. It looks up the members in the list, which may be long. */
function hasChanged(list: string): string {
  const names = `IN (SELECT value FROM json_each(:filter, '${list}'))`;
  return `(EXISTS (SELECT 1 FROM json_each(changes.before) WHERE key ${names})
    OR EXISTS (SELECT 1 FROM json_each(changes.added) AS added WHERE added.value ${names}))`;
}

/** SQL: whether a change is as the filter says. */
const IS_WANTED = `(json_type(:filter, '$.op') IS NULL OR changes.op IN (SELECT value FROM json_each(:filter, '$.op')))
  AND (json_type(:filter, '$.field') IS NULL OR changes.op IN (1, 3) AND ${hasChanged('$.field')})
  AND (json_type(:filter, '$.keys') IS NULL OR changes.op <> 1 OR ${hasChanged('$.keys')})`;

const MATCHING = `${HEADED} WHERE changes.seq > :seq AND changes.seq <= :toSeq AND ${IS_WANTED}
  ORDER BY changes.seq LIMIT :limit + 0`;

function filterText({ op, field, keys }: ChangeFilter): string {
  return JSON.stringify({
    op: op?.map((one) => OPS.indexOf(one)),
    field: field?.map((name) => name.replace(/^\//, '')),
    keys: keys ? [...keys] : undefined,
  });
}

/** Random bytes of an era: two openings of a mirror get the same ones once in 2^48. */
const ERA_BYTES = 6;
/** Creations per INSERT: a page of 1,000 takes 0.28 ms, one by one 0.97 ms, in one statement that counts 0.44 ms. */
const BATCH = 100;
const NONE: readonly string[] = [];
/** Numbers that are searched at once. For safety: it takes up to 20 ms. */
const SEARCHED = 5_000;
/** Former values of more characters are not read for a list. For safety: a list is read every second. */
const MAX_LISTED = 50_000;

export function addedOf(text: string | null): readonly string[] {
  return text === null ? NONE : (JSON.parse(text) as string[]);
}

/** Reads by index into one literal: destructuring and spreading cost three times as much as reading the row. */
function headedOf(raw: HeadedRaw, era: string): HeadedChange {
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
    era,
  };
}

function rowOf(raw: Raw): ChangeRow {
  return { ...raw, op: OPS[raw.op] ?? 'updated', added: addedOf(raw.added) };
}

type ListedRaw = [...RawStart, title: string | null, before: string | null, added: string | null, isLong: number];

function listedOf([seq, at, runId, number, vbid, , title, before, added, isLong]: ListedRaw): ListedChange {
  const op = OPS[number] ?? 'updated';
  const known = op === 'removed' || before === null ? NONE : [...objectMembers(before).keys()];
  return { seq, at, runId, op, vbid, title, fields: isLong === 1 ? null : [...known, ...addedOf(added)] };
}

export type ChangeReader = ReturnType<typeof createChangeReader>;

function createEraReader({ tuples }: Queries) {
  const eras = tuples<[{ from: number; to: number }], [firstSeq: number, id: string]>(
    `SELECT first_seq, id FROM eras WHERE first_seq <= :to
     AND first_seq >= coalesce((SELECT max(first_seq) FROM eras WHERE first_seq <= :from), 0) ORDER BY first_seq`,
  );
  /** @param found in order. One query for all: one in each row takes a quarter of the time that reading it does. */
  return (found: readonly HeadedRaw[]): HeadedChange[] => {
    const known = eras({ from: found[0]?.[0] ?? 0, to: found.at(-1)?.[0] ?? 0 });
    let next = 0;
    return found.map((raw) => {
      while (next < known.length && (known[next]?.[0] ?? 0) <= raw[0]) next++;
      return headedOf(raw, known[next - 1]?.[1] ?? '');
    });
  };
}

/**
 * Lists at most `limit` records within a range that are so. A filter searches 5,000 records at once.
 * @returns a function, which returns with them `next`: the number where the list goes on; null if it has ended
 */
function createLister({ tuples }: Queries, lastSeq: () => number) {
  const list = inRange((order) =>
    tuples<[Required<Range> & { filter: string; limit: number }], ListedRaw>(
      `SELECT changes.seq, changes.at, changes.run_id, changes.op, products.vbid, changes.product_id,
       ${listed('title')}, CASE WHEN length(changes.before) <= ${MAX_LISTED} THEN changes.before END, changes.added,
       changes.op <> 2 AND coalesce(length(changes.before) > ${MAX_LISTED}, 0)
     FROM changes CROSS JOIN products ON products.id = changes.product_id
     WHERE changes.seq < :before AND changes.seq > :after AND ${IS_WANTED} ORDER BY changes.seq ${order} LIMIT :limit`,
    ),
  );
  return (limit: number, { before, after, ...only }: Range & ChangeFilter = {}) => {
    const end = lastSeq() + 1;
    const isAll = only.op === undefined && only.field === undefined;
    const from = after ?? (isAll ? 0 : Math.max(0, Math.min(before ?? end, end) - 1 - SEARCHED));
    const to = after === undefined ? (before ?? end) : isAll ? end : Math.min(after + 1 + SEARCHED, end);
    const { query } = list({ after });
    const found = query({ before: to, after: from, filter: filterText(only), limit: limit + 1 }).map(listedOf);
    const changes = found.slice(0, limit);
    const edge = after === undefined ? (from > 0 ? from + 1 : null) : to < end ? to - 1 : null;
    return { changes, next: found.length > limit ? (changes.at(-1)?.seq ?? null) : edge };
  };
}

export function createChangeReader(queries: Queries) {
  const { rows, tuples, value, values, number } = queries;
  const withEras = createEraReader(queries);
  const lastSeq = number(`SELECT ${LAST_SEQ}`);
  // `+ 0` as in made-lines.ts, here and below.
  const after = tuples<[number, number], HeadedRaw>(`${HEADED} WHERE changes.seq > ? ORDER BY changes.seq LIMIT ? + 0`);
  const matching = tuples<[{ seq: number; toSeq: number; filter: string; limit: number }], HeadedRaw>(MATCHING);
  const numbered = tuples<[seqs: string], HeadedRaw>(
    `${HEADED} WHERE changes.seq IN (SELECT value FROM json_each(?)) ORDER BY changes.seq`,
  );
  const newest = tuples<[{ seq: number; toSeq: number; asOf: number; limit: number }], HeadedRaw>(
    `${HEADED} WHERE changes.seq > :seq AND changes.seq <= :toSeq AND ${NEWEST} ORDER BY changes.seq LIMIT :limit + 0`,
  );
  // CROSS JOIN, so that SQLite looks up the product's records and does not search the log for them.
  const ofProduct = rows<[productId: number, beforeSeq: number, afterSeq: number, limit: number], Raw>(
    `SELECT changes.seq, changes.at, changes.run_id AS runId, changes.op, products.vbid,
       changes.product_id AS productId, changes.prev_seq AS prevSeq, changes.before, changes.added, ${eraSql('changes.seq')} AS era
     FROM changes CROSS JOIN products ON products.id = changes.product_id
     WHERE changes.product_id = ? AND changes.seq < ? AND changes.seq > ? ORDER BY changes.seq DESC LIMIT ? + 0`,
  );
  const atFrom = value<[number], number>('SELECT at FROM changes WHERE seq >= ? ORDER BY seq LIMIT 1');
  const runsAfter = tuples<[seq: number, limit: number], [runId: number, seq: number]>(
    'SELECT run_id, max(seq) FROM (SELECT run_id, seq FROM changes WHERE seq > ? ORDER BY seq LIMIT ?) GROUP BY run_id',
  );
  const lastBefore = number<[{ seq: number; beforeMs: number; nowMs: number; limit: number }]>(
    `SELECT max(seq) FROM (SELECT seq, max(at) OVER (ORDER BY seq) AS latest FROM
       (SELECT seq, at FROM changes WHERE seq > :seq AND at <= :nowMs ORDER BY seq LIMIT :limit))
     WHERE latest < :beforeMs`,
  );

  return {
    /** The newest `seq` ever assigned, 0 for none; only the keeper may count on from it. */
    lastSeq,
    /** Records after `seq`, oldest first. */
    after: (seq: number, limit: number) => withEras(after(seq, limit)),
    /** Of the next records after `seq`, oldest first, at most `limit` that match. @returns how far it has searched, too */
    matching: (seq: number, limit: number, only: ChangeFilter) => {
      const toSeq = Math.max(seq, Math.min(seq + SEARCHED, lastSeq()));
      const found = matching({ seq, toSeq, filter: filterText(only), limit });
      return { changes: withEras(found), to: found.length === limit ? (found.at(-1)?.[0] ?? toSeq) : toSeq };
    },
    /** The records with these numbers, oldest first. */
    numbered: (seqs: readonly number[]) => withEras(numbered(JSON.stringify(seqs))),
    /** Of the records after `seq` up to `toSeq`, oldest first: those that are their product's newest as of `asOf`. */
    newest: (seq: number, toSeq: number, asOf: number, limit: number) => withEras(newest({ seq, toSeq, asOf, limit })),
    /** A product's records after `afterSeq` and before `beforeSeq`, newest first. */
    ofProduct: (productId: number, beforeSeq: number, limit: number, afterSeq = 0): ChangeRow[] =>
      ofProduct(productId, beforeSeq, afterSeq, limit).map(rowOf),
    /** The product's next record after `seq`; null if there is none. */
    laterOf: value<[productId: number, seq: number], number>(
      'SELECT seq FROM changes WHERE product_id = ? AND seq > ? ORDER BY seq LIMIT 1',
    ),
    list: createLister(queries, lastSeq),
    /**
     * The newest `seq` that was recorded before `ms`, milliseconds since 1970; 0 for none. Found by halving: about 25
     * look-ups in a log of ten million. If a clock was set back meanwhile, the result is one of several.
     */
    seqAt: (ms: number): number => {
      let from = 0;
      let to = lastSeq();
      while (from < to) {
        const middle = Math.ceil((from + to) / 2);
        if ((atFrom(middle) ?? Number.POSITIVE_INFINITY) < ms) from = middle;
        else to = middle - 1;
      }
      return from;
    },
    /** The newest `seq` before the records of the newest run; 0 for none. */
    beforeRun: number<[runId: number]>('SELECT seq FROM changes WHERE run_id <> ? ORDER BY seq DESC LIMIT 1'),
    /** The newest `seq` before the records of the run that made the next record after `seq`; 0 for none. */
    beforeNext: number<[{ seq: number }]>(
      `SELECT seq FROM changes WHERE seq <= @seq AND run_id <>
         (SELECT run_id FROM changes WHERE seq > @seq ORDER BY seq LIMIT 1) ORDER BY seq DESC LIMIT 1`,
    ),
    /** Ids of the products that were changed after `seq`. */
    productsAfter: values<[seq: number], number>('SELECT product_id FROM changes WHERE seq > ?'),
    /** The runs that made the next `limit` records after `seq`, and where these end; null if there are none. */
    runsAfter: (seq: number, limit: number): { readonly runs: readonly number[]; readonly upTo: number } | null => {
      const found = runsAfter(seq, limit);
      if (found.length === 0) return null;
      return { runs: found.map(([run]) => run), upTo: Math.max(...found.map(([, last]) => last)) };
    },
    /** The era of a change, also of one that was pruned; null for 0, the position before all changes. */
    eraOf: value<[seq: number], string>(`SELECT ${eraSql('?')}`),
    /** When a change was recorded, milliseconds since 1970; null if the log does not hold it. */
    timeOf: value<[seq: number], number>('SELECT at FROM changes WHERE seq = ?'),
    /** When the first change from `seq` on was recorded; null if there is none. */
    atFrom,
    /** Up to this `seq` the log holds only each product's newest change as of then; 0 if nothing was pruned. */
    prunedTo: number('SELECT pruned_to FROM mirror WHERE id = 1'),
    /**
     * Of the records after `seq`, at most `limit`: the last one before the first that is younger than `beforeMs`; `seq`
     * if there is none. Ignores records dated after `nowMs`, which a clock that was ahead made.
     */
    lastBefore: (seq: number, beforeMs: number, nowMs: number, limit: number): number =>
      lastBefore({ seq, beforeMs, nowMs, limit }) || seq,
  };
}

export type ChangeWriter = ReturnType<typeof createChangeWriter>;

export function createChangeWriter({ values, write }: Queries, reader: ChangeReader) {
  const era = randomBytes(ERA_BYTES).toString('hex');
  // Before the first change of an opening, so that the era covers all that this transaction records.
  const ensureEra = write<[{ era: string }]>(
    `INSERT INTO eras (first_seq, id)
     SELECT ${LAST_SEQ} + 1, :era WHERE (SELECT id FROM eras ORDER BY first_seq DESC LIMIT 1) IS NOT :era`,
  );
  const insert = write(
    'INSERT INTO changes (seq, at, run_id, op, product_id, prev_seq, before, added) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
  );
  const createdRows = (count: number): string => {
    const rows = Array.from({ length: count }, (_, at) => `(:seq + ${at}, :at, :run, 0, :id + ${at})`);
    return `INSERT OR FAIL INTO changes (seq, at, run_id, op, product_id) VALUES ${rows.join(', ')}`;
  };
  const insertCreated = write(createdRows(1));
  const insertManyCreated = write(createdRows(BATCH));
  const setPrunedTo = write('UPDATE mirror SET pruned_to = ? WHERE id = 1');
  const dropFollowed = values<[number, number], number>(
    `DELETE FROM changes WHERE seq IN
       (SELECT prev_seq FROM changes WHERE seq > ? AND seq <= ? AND prev_seq IS NOT NULL) RETURNING seq`,
  );

  return {
    ...reader,
    append: (changes: readonly NewChange[], runId: number, atMs: number): void => {
      if (changes.length > 0) ensureEra({ era });
      for (const { seq, op, productId, prevSeq, before, added } of changes) {
        const addedText = added.length === 0 ? null : JSON.stringify(added);
        insert(seq, atMs, runId, OPS.indexOf(op), productId, prevSeq, before, addedText);
      }
    },
    /** Records `count` creations at once: of products from `firstId` on, as records from `firstSeq` on. */
    appendCreated: (firstSeq: number, firstId: number, count: number, runId: number, atMs: number): void => {
      if (count === 0) return;
      ensureEra({ era });
      for (let done = 0; done < count; ) {
        const isMany = count - done >= BATCH;
        const insertThem = isMany ? insertManyCreated : insertCreated;
        insertThem({ seq: firstSeq + done, id: firstId + done, run: runId, at: atMs });
        done += isMany ? BATCH : 1;
      }
    },
    /** Drops records that another one up to `toSeq` supersedes: the others fill new sinks. @returns the dropped ones */
    prune: (toSeq: number): number[] => {
      const dropped = dropFollowed(reader.prunedTo(), toSeq);
      setPrunedTo(toSeq);
      return dropped;
    },
  };
}
