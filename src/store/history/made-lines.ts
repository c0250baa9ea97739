import type { RunKind } from '../../catalog/run-types.ts';
import { eraSql } from '../rows/changes.ts';
import type { Queries } from '../schema/queries.ts';

/*
 * The texts of many events, made by SQLite in one piece. To read the rows and to make texts of them takes several times as
 * long. SQLite makes the texts of products that were created and have not changed since: nearly all of a new mirror.
 */

/** Which changes to read, oldest first. */
export interface LineRange {
  readonly after: number;
  readonly upTo: number;
  /** Of each product only the newest change as of this one; null: every change. */
  readonly asOf: number | null;
  readonly withRemoved: boolean;
  readonly limit: number;
}

/** What the next changes have in common. */
export interface LineHead {
  /** When the next one was recorded. */
  readonly at: number;
  readonly runId: number;
  readonly cause: RunKind;
  readonly era: string;
  /** The first change of the following era; null without one. */
  readonly nextEra: number | null;
}

/** Texts that the events share. */
export interface LineParts {
  /** What comes before the number of the change. */
  readonly start: string;
  /** What comes after it, up to the key of the product. */
  readonly middle: string;
  /** Text of `at` of the head. */
  readonly time: string;
}

type Values = Pick<LineRange, 'after' | 'upTo' | 'asOf' | 'limit'> &
  LineParts &
  Pick<LineHead, 'at' | 'runId' | 'cause'>;
type Made = [events: number, first: number, last: number, unmade: string | null, bytes: Buffer];
type Head = [at: number, runId: number, cause: RunKind, era: string, nextEra: number | null];

/** Longer products are read one by one, so that the piece has no more than a batch. */
const LONG_BYTES = 16_000;
const MADE = `changes.op = 0 AND products.changed_seq = changes.seq AND changes.at BETWEEN 0 AND 253402300799999
  AND octet_length(products.body) <= ${LONG_BYTES}`;
const CAUSE = `coalesce((SELECT kind FROM runs WHERE runs.id = changes.run_id), 'full')`;
const TIME = `strftime('%Y-%m-%dT%H:%M:%S', changes.at / 1000, 'unixepoch') || format('.%03dZ', changes.at % 1000)`;

/** As `eventText` of catalog/event.ts. Most changes of a batch have the time and the run of its first one. */
const LINE = `format('%s%d%s%s,"time":"%s","datacontenttype":"application/json","sequence":"%020d","data":{"op":"created","vbid":'
  || '%s,"product":%s,"before":null,"changed":[],"run":%d,"cause":"%s"}}' || char(10), :start, changes.seq, :middle,
  json_quote(products.vbid), CASE changes.at WHEN :at THEN :time ELSE ${TIME} END, changes.seq,
  json_quote(products.vbid), products.body, changes.run_id, CASE changes.run_id WHEN :runId THEN :cause ELSE ${CAUSE} END)`;

/**
 * `group_concat` takes the rows in the order in which the inner query returns them. Bytes, because a text would be decoded
 * here and encoded again: a quarter of the time. `+ 0`, because SQLite prepares a statement again at each call if a parameter
 * alone is its limit.
 * @param where which changes
 */
function linesSql(where: string): string {
  return `SELECT count(*), min(seq), max(seq), group_concat(seq) FILTER (WHERE line IS NULL),
    CAST(group_concat(coalesce(line, char(10)), '') AS BLOB) FROM
    (SELECT changes.seq, iif(${MADE}, ${LINE}, NULL) AS line
     FROM changes JOIN products ON products.id = changes.product_id
     WHERE changes.seq > :after AND changes.seq <= :upTo AND ${where} ORDER BY changes.seq LIMIT :limit + 0)`;
}

const NEWEST = `(products.changed_seq = changes.seq OR (products.changed_seq > :asOf AND changes.seq =
  (SELECT own.seq FROM changes AS own WHERE own.product_id = changes.product_id AND own.seq <= :asOf
   ORDER BY own.seq DESC LIMIT 1)))`;

export function createLineReader({ tuple }: Queries) {
  const every = tuple<[Values], Made>(linesSql('true'));
  const newest = tuple<[Values], Made>(linesSql(NEWEST));
  const newestLiving = tuple<[Values], Made>(linesSql(`${NEWEST} AND changes.op <> 2`));
  const head = tuple<[after: number], Head>(
    `SELECT at, run_id, ${CAUSE}, ${eraSql('seq')}, (SELECT min(first_seq) FROM eras WHERE first_seq > seq)
     FROM changes WHERE seq > ? ORDER BY seq LIMIT 1`,
  );

  return {
    /** Null without a change after `seq`. */
    head: (seq: number): LineHead | null => {
      const found = head(seq);
      if (found === undefined) return null;
      const [at, runId, cause, era, nextEra] = found;
      return { at, runId, cause, era, nextEra };
    },
    /**
     * @param range within one era
     * @returns null without a change in the range; `bytes`: a line for each event, that of an `unmade` one, whose text SQLite
     *   does not make, empty; with more line breaks if a body has some
     */
    make: (range: LineRange, { at, runId, cause }: LineHead, parts: LineParts) => {
      const { after, upTo, asOf, withRemoved, limit } = range;
      const select = asOf === null ? every : withRemoved ? newest : newestLiving;
      const made = select({ after, upTo, asOf, limit, at, runId, cause, ...parts });
      if (made === undefined || made[0] === 0) return null;
      const [events, first, last, unmade, bytes] = made;
      return { bytes, events, first, last, unmade: unmade === null ? [] : unmade.split(',').map(Number) };
    },
  };
}
