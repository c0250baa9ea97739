import type { Database } from 'better-sqlite3';
import type { BetterSQLite3Database } from 'drizzle-orm/better-sqlite3';
import type { RecordedChange } from '../catalog/event.ts';
import { eq, sql } from './drizzle.ts';
import { type parked as parkedEvents, type sinkGaps, sinks } from './schema.ts';

/**
 * ```
 *            pause            refused for good, by policy; 410; another mirror's target
 * running ─────────► paused      running ─────────► stopped
 *    ▲                  │           ▲                  │       the log would grow beyond its cap
 *    └───── resume ─────┘           └───── resume ─────┘       any ─────────► disabled ── resume ──► running
 * ```
 * Sinks in any state but `disabled` hold the change log: records that they have not confirmed are not pruned.
 */
export type SinkState = SinkRow['state'];

/** A sink as the mirror knows it: see schema.ts. */
export type SinkRow = Readonly<typeof sinks.$inferSelect>;

/** An event that a sink refused, or that waits for such an event. See schema.ts. */
export interface ParkedEvent extends Readonly<Omit<typeof parkedEvents.$inferSelect, 'sinkId' | 'change'>> {
  readonly change: RecordedChange;
}

export type ParkedState = ParkedEvent['state'];

/** An event to park. */
export type Refused = Pick<ParkedEvent, 'seq' | 'reason' | 'at' | 'change'>;

/** Records that a sink missed, because they were pruned: after `after`, up to `upTo`. */
export type SinkGap = Readonly<Omit<typeof sinkGaps.$inferSelect, 'sinkId'>>;

/** Sinks and how far each is; see write-sinks.ts for what changes them. */
export interface SinkReader {
  list(): SinkRow[];
  get(name: string): SinkRow | undefined;
  parked(id: number, state?: ParkedState, limit?: number): ParkedEvent[];
  /** Number of events that are refused, waiting or ready. */
  parkedCount(id: number): number;
  /** Events that were freed, in order: `ready` or `delivered`. */
  freed(id: number, state: 'ready' | 'delivered'): Pick<ParkedEvent, 'seq' | 'freed'>[];
  /** The first ready events, within these limits but at least one if there is one. */
  ready(id: number, most: { readonly events: number; readonly chars: number }): ParkedEvent[];
  stateOf(id: number, seq: number): ParkedState | undefined;
  /** Products with a refused or waiting event, and its `seq`: later events of them have to wait. */
  blocked(id: number): Map<string, number>;
  skipped(id: number): Set<number>;
  gaps(id: number): SinkGap[];
}

interface RawParked extends Omit<ParkedEvent, 'change'> {
  readonly change: string;
}

function prepareParked(sqlite: Database) {
  return {
    all: sqlite.prepare<{ id: number; state: string | null; limit: number }, RawParked>(
      `SELECT seq, vbid, state, reason, at, freed, change FROM parked
       WHERE sink_id = :id AND (:state IS NULL OR state = :state) ORDER BY seq LIMIT :limit`,
    ),
    count: sqlite
      .prepare<[number], number>(
        "SELECT count(*) FROM parked WHERE sink_id = ? AND state IN ('refused', 'waiting', 'ready')",
      )
      .pluck(),
    freed: sqlite.prepare<[number, string], Pick<ParkedEvent, 'seq' | 'freed'>>(
      'SELECT seq, freed FROM parked WHERE sink_id = ? AND state = ? ORDER BY seq',
    ),
    stateOf: sqlite
      .prepare<[number, number], ParkedState>('SELECT state FROM parked WHERE sink_id = ? AND seq = ?')
      .pluck(),
    ready: sqlite.prepare<{ id: number; events: number; chars: number }, RawParked>(
      `SELECT seq, vbid, state, reason, at, freed, change FROM
         (SELECT *, sum(length(change)) OVER (ORDER BY seq) AS size FROM parked
          WHERE sink_id = :id AND state = 'ready' ORDER BY seq LIMIT :events)
       WHERE size <= :chars OR size = length(change) ORDER BY seq`,
    ),
    blocked: sqlite
      .prepare<[number], [string, number]>(
        "SELECT vbid, min(seq) FROM parked WHERE sink_id = ? AND state IN ('refused', 'waiting') GROUP BY vbid",
      )
      .raw(),
    skipped: sqlite.prepare<[number], number>("SELECT seq FROM parked WHERE sink_id = ? AND state = 'skipped'").pluck(),
  };
}

function eventOf(raw: RawParked): ParkedEvent {
  return { ...raw, change: JSON.parse(raw.change) as RecordedChange };
}

export function createSinkReader(sqlite: Database, orm: BetterSQLite3Database): SinkReader {
  const list = orm.select().from(sinks).orderBy(sinks.name).prepare();
  const get = orm
    .select()
    .from(sinks)
    .where(eq(sinks.name, sql.placeholder('name')))
    .prepare();
  const parked = prepareParked(sqlite);
  const gaps = sqlite.prepare<[number], SinkGap>(
    'SELECT after, up_to AS upTo, at FROM sink_gaps WHERE sink_id = ? ORDER BY after',
  );

  return {
    list: () => list.all(),
    get: (name) => get.get({ name }),
    parked: (id, state, limit = -1) => parked.all.all({ id, state: state ?? null, limit }).map(eventOf),
    blocked: (id) => new Map(parked.blocked.all(id) as unknown as [string, number][]),
    skipped: (id) => new Set(parked.skipped.all(id)),
    parkedCount: (id) => parked.count.get(id) ?? 0,
    freed: (id, state) => parked.freed.all(id, state),
    ready: (id, { events, chars }) => parked.ready.all({ id, events, chars }).map(eventOf),
    stateOf: (id, seq) => parked.stateOf.get(id, seq),
    gaps: (id) => gaps.all(id),
  };
}
