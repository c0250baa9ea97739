import type { EventSpan } from '@catchword/catalog/event';
import type { RunKind } from '@catchword/catalog/run-types';
import { eraSql, NEWEST } from '../rows/changes.ts';
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

/** `unmade`: numbers between commas. */
type Made = Pick<EventSpan, 'events' | 'first' | 'last'> & { readonly unmade: string | null; readonly bytes: Buffer };

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
 */
function linesSql(where: string): string {
  return `SELECT count(*) AS events, min(seq) AS first, max(seq) AS last,
    group_concat(seq) FILTER (WHERE line IS NULL) AS unmade, CAST(group_concat(coalesce(line, char(10)), '') AS BLOB) AS bytes FROM
    (SELECT changes.seq, iif(${MADE}, ${LINE}, NULL) AS line
     FROM changes JOIN products ON products.id = changes.product_id
     WHERE changes.seq > :after AND changes.seq <= :upTo AND ${where} ORDER BY changes.seq LIMIT :limit + 0)`;
}

export function createLineReader({ row }: Queries) {
  const makes = (where: string) => row<[LineRange & LineHead & LineParts], Made>(linesSql(where));
  const every = makes('true');
  const newest = makes(NEWEST);
  const newestLiving = makes(`${NEWEST} AND changes.op <> 2`);

  return {
    /** Undefined without a change after `seq`. */
    head: row<[seq: number], LineHead>(
      `SELECT at, run_id AS runId, ${CAUSE} AS cause, ${eraSql('seq')} AS era,
         (SELECT min(first_seq) FROM eras WHERE first_seq > seq) AS nextEra
       FROM changes WHERE seq > ? ORDER BY seq LIMIT 1`,
    ),
    /**
     * @param range within one era
     * @returns null without a change in the range; `bytes`: a line for each event, that of an `unmade` one, whose text SQLite
     *   does not make, empty; with more line breaks if a body has some
     */
    make: (range: LineRange, head: LineHead, parts: LineParts) => {
      const select = range.asOf === null ? every : range.withRemoved ? newest : newestLiving;
      const made = select({ ...range, ...head, ...parts });
      if (made === undefined || made.events === 0) return null;
      return { ...made, unmade: made.unmade?.split(',').map(Number) ?? [] };
    },
  };
}
