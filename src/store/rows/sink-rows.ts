import type { RecordedChange } from '@catchword/catalog/event';
import type { ChangeOp } from '@catchword/catalog/run-types';
import type { BetterSQLite3Database } from 'drizzle-orm/better-sqlite3';
import { sql } from '../schema/drizzle.ts';
import { listed, onFirstUse, type Queries } from '../schema/queries.ts';
import {
  type CheckCounts,
  type parked as parkedEvents,
  type StoreDifference,
  type sinkGaps,
  sinks,
} from '../schema/sink-tables.ts';

/**
 * ```
 *            pause            refused for good, by policy; 410; another mirror's target
 * running ─────────► paused      running ─────────► stopped
 *    ▲                  │           ▲                  │       the log would grow beyond its cap
 *    └───── resume ─────┘           └───── resume ─────┘       any ─────────► disabled ── resume ──► running
 *
 *            a changed view, the end of a fill or the next run would remove too much; an unusual run comes next
 * running ─────────► held ── approve, or the setting is put back ──► running
 * ```
 * Sinks in any state but `disabled` hold the change log: records that they have not confirmed are not pruned.
 */
export type SinkState = SinkRow['state'];

/** A sink as the mirror knows it: see schema.ts. */
export type SinkRow = Readonly<typeof sinks.$inferSelect>;

/** Whether the log keeps records that the sink has not confirmed. */
export function holdsLog({ configured, state }: Pick<SinkRow, 'configured' | 'state'>): boolean {
  return configured && state !== 'disabled';
}

/** Whether the store has ever confirmed anything, to this sink or to the one whose place it took. */
export function isFed({ cursor, ackedAt }: Pick<SinkRow, 'cursor' | 'ackedAt'>): boolean {
  return cursor > 0 || ackedAt !== null;
}

/** How many products of a store still differ after a comparison. */
export function remaining(counts: Pick<CheckCounts, StoreDifference | 'repaired'>): number {
  const { differing, missing, extra, repaired } = counts;
  return differing + missing + extra - repaired;
}

/** An event that a sink refused, or that waits for such an event. See schema.ts. */
export interface ParkedEvent extends Readonly<Omit<typeof parkedEvents.$inferSelect, 'sinkId' | 'change'>> {
  readonly change: RecordedChange;
}

export type ParkedState = ParkedEvent['state'];

/** An event that waits for a decision or for its delivery, without its change. */
export interface WaitingEvent extends Omit<ParkedEvent, 'change' | 'state'> {
  readonly state: Exclude<ParkedState, 'skipped' | 'delivered'>;
  readonly op: ChangeOp;
  /** The product's newest title. */
  readonly title: string | null;
  /** The beginning of the product as it was sent; null: it was removed, or no body was asked for. */
  readonly body: string | null;
  /** Characters of all of it. */
  readonly length: number;
}

/** Which parked events: in a state, and of a product. */
export interface ParkedFilter {
  readonly state?: ParkedState | undefined;
  readonly vbid?: string | undefined;
}

/** An event to park. */
export type Refused = Pick<ParkedEvent, 'seq' | 'reason' | 'at' | 'change'>;

/** Records that a sink missed, because they were pruned: after `after`, up to `upTo`. */
export type SinkGap = Readonly<Omit<typeof sinkGaps.$inferSelect, 'sinkId'>>;

type RawParked = Omit<ParkedEvent, 'change'> & { readonly change: string };

function eventOf(raw: RawParked): ParkedEvent {
  return { ...raw, change: JSON.parse(raw.change) as RecordedChange };
}

export type SinkReader = ReturnType<typeof createSinkReader>;

/** Reads sinks and how far each is; see write-sinks.ts for what changes them. */
export function createSinkReader({ rows, tuples, value, values, number }: Queries, orm: BetterSQLite3Database) {
  const list = onFirstUse(() => orm.select().from(sinks).orderBy(sinks.name).prepare());
  const ofName = sql`name = ${sql.placeholder('name')}`;
  const get = onFirstUse(() => orm.select().from(sinks).where(ofName).prepare());
  const parked = rows<[{ id: number; state: ParkedState | null }], RawParked>(
    `SELECT seq, vbid, state, reason, at, freed, change FROM parked
     WHERE sink_id = :id AND (:state IS NULL OR state = :state) ORDER BY seq`,
  );
  const ready = rows<[{ id: number; events: number; chars: number }], RawParked>(
    `SELECT seq, vbid, state, reason, at, freed, change FROM
       (SELECT *, sum(length(change)) OVER (ORDER BY seq) AS size FROM parked
        WHERE sink_id = :id AND state = 'ready' ORDER BY seq LIMIT :events + 0)
     WHERE size <= :chars OR size = length(change) ORDER BY seq`,
  );
  const blocked = tuples<[number], [vbid: string, seq: number]>(
    "SELECT vbid, min(seq) FROM parked WHERE sink_id = ? AND state IN ('refused', 'waiting') GROUP BY vbid",
  );
  const parkedCount = number<[id: number, limit: number]>(
    `SELECT count(*) FROM
       (SELECT 1 FROM parked WHERE sink_id = ? AND state IN ('refused', 'waiting', 'ready') LIMIT ?)`,
  );
  type Waiting = { id: number; after: number; limit: number; chars: number } & Record<'state' | 'vbid', string | null>;
  const waiting = rows<[Waiting], WaitingEvent>(
    `SELECT seq, parked.vbid, change ->> 'op' AS op, state, reason, at, freed, ${listed('title')},
         iif(:chars > 0, substr(change ->> 'body', 1, :chars), NULL) AS body, length(coalesce(change ->> 'body', '')) AS length
       FROM parked LEFT JOIN products ON products.vbid = parked.vbid
       WHERE sink_id = :id AND seq > :after AND state IN ('refused', 'waiting', 'ready')
         AND state = coalesce(:state, state) AND parked.vbid = coalesce(:vbid, parked.vbid) ORDER BY seq LIMIT :limit`,
  );
  const skipped = values<[number], number>("SELECT seq FROM parked WHERE sink_id = ? AND state = 'skipped'");

  return {
    list: (): SinkRow[] => list().all(),
    get: (name: string): SinkRow | undefined => get().get({ name }),
    /** Whether a sink of this name has fed the store with this identity. */
    hasFed: ({ name, identity }: Pick<SinkRow, 'name' | 'identity'>): boolean => {
      const row = get().get({ name });
      return row !== undefined && isFed(row) && row.identity === identity;
    },
    parked: (id: number, state: ParkedState | null = null) => parked({ id, state }).map(eventOf),
    /**
     * Events after `seq` that wait for a decision or for their delivery, oldest first. A limit below 0 is none.
     * @param chars characters of each body; default: none
     */
    waiting: (id: number, after: number, limit: number, only: ParkedFilter = {}, chars = 0) =>
      waiting({ id, after, limit, chars, state: only.state ?? null, vbid: only.vbid ?? null }),
    /** Counts at most `limit`. */
    parkedCount: (id: number, limit = -1) => parkedCount(id, limit),
    freed: rows<[id: number, state: 'ready' | 'delivered'], Pick<ParkedEvent, 'seq' | 'freed'>>(
      'SELECT seq, freed FROM parked WHERE sink_id = ? AND state = ? ORDER BY seq',
    ),
    /** The first ready events, within these limits but at least one if there is one. */
    ready: (id: number, most: { readonly events: number; readonly chars: number }) =>
      ready({ id, ...most }).map(eventOf),
    stateOf: value<[id: number, seq: number], ParkedState>('SELECT state FROM parked WHERE sink_id = ? AND seq = ?'),
    /** Products with a refused or waiting event, and its `seq`: later events of them have to wait. */
    blocked: (id: number) => new Map(blocked(id)),
    skipped: (id: number) => new Set(skipped(id)),
    gaps: rows<[id: number], SinkGap>(
      'SELECT after, up_to AS upTo, at FROM sink_gaps WHERE sink_id = ? ORDER BY after',
    ),
  };
}
