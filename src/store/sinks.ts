import type { Database } from 'better-sqlite3';
import type { RecordedChange } from '../catalog/event.ts';

/**
 * ```
 *            pause            refused for good, by policy; 410; another mirror's target
 * running ─────────► paused      running ─────────► stopped
 *    ▲                  │           ▲                  │       the log would grow beyond its cap
 *    └───── resume ─────┘           └───── resume ─────┘       any ─────────► disabled ── resume ──► running
 * ```
 * Sinks in any state but `disabled` hold the change log: records that they have not confirmed are not pruned.
 */
export type SinkState = 'running' | 'paused' | 'stopped' | 'disabled';

/** A sink as the mirror knows it. Times are milliseconds since 1970. */
export interface SinkRow {
  readonly id: number;
  readonly name: string;
  readonly kind: string;
  /** Where it is, without credentials. */
  readonly address: string;
  /** A sink with another identity is another store. */
  readonly identity: string;
  /** False if the settings no longer name it. */
  readonly configured: boolean;
  readonly state: SinkState;
  /** Grows when delivery restarts. */
  readonly generation: number;
  /** The generation, and the change after which, delivery last restarted. */
  readonly beganGeneration: number;
  readonly beganCursor: number;
  /** Whether it was opened since it was configured or moved. */
  readonly opened: boolean;
  /** Newest `seq` that the sink has confirmed. */
  readonly cursor: number;
  /** Up to this `seq`, only each product's newest change is delivered. */
  readonly backfillTo: number;
  readonly backfillRemoved: boolean;
  readonly takeOver: boolean;
  readonly delivered: number;
  /** Recent events per second. */
  readonly rate: number;
  readonly ackedAt: number | null;
  readonly error: string | null;
  readonly errorAt: number | null;
  readonly retryAt: number | null;
  /** The refused event before which it stopped; null if it stopped for another reason. */
  readonly stoppedAt: number | null;
}

/** A `delivered` event was freed and the sink has it; it is kept for a while, because the sink may lose its tail. */
export type ParkedState = 'refused' | 'waiting' | 'ready' | 'delivered' | 'skipped';

export interface ParkedEvent {
  readonly seq: number;
  readonly vbid: string;
  readonly state: ParkedState;
  readonly reason: string;
  readonly at: number;
  /** The generation in which it became ready. */
  readonly freed: number;
  readonly change: RecordedChange;
}

/** An event to park. */
export type Refused = Pick<ParkedEvent, 'seq' | 'reason' | 'at' | 'change'>;

/** Records that a sink missed, because they were pruned: after `after`, up to `upTo`. */
export interface SinkGap {
  readonly after: number;
  readonly upTo: number;
  readonly at: number;
}

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

const ROW = `id, name, kind, address, identity, configured, state, generation, began_generation AS beganGeneration,
  began_cursor AS beganCursor, opened, cursor, backfill_to AS backfillTo,
  backfill_removed AS backfillRemoved, take_over AS takeOver, delivered, rate, acked_at AS ackedAt, error,
  error_at AS errorAt, retry_at AS retryAt, stopped_at AS stoppedAt`;

type Flag = 'configured' | 'opened' | 'backfillRemoved' | 'takeOver';
type Raw = Omit<SinkRow, Flag> & Record<Flag, number>;

function rowOf(raw: Raw): SinkRow {
  const { configured, opened, backfillRemoved, takeOver } = raw;
  return {
    ...raw,
    configured: configured === 1,
    opened: opened === 1,
    backfillRemoved: backfillRemoved === 1,
    takeOver: takeOver === 1,
  };
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

export function createSinkReader(sqlite: Database): SinkReader {
  const list = sqlite.prepare<[], Raw>(`SELECT ${ROW} FROM sinks ORDER BY name`);
  const get = sqlite.prepare<[string], Raw>(`SELECT ${ROW} FROM sinks WHERE name = ?`);
  const parked = prepareParked(sqlite);
  const gaps = sqlite.prepare<[number], SinkGap>(
    'SELECT after, up_to AS upTo, at FROM sink_gaps WHERE sink_id = ? ORDER BY after',
  );

  return {
    list: () => list.all().map(rowOf),
    get: (name) => {
      const raw = get.get(name);
      return raw === undefined ? undefined : rowOf(raw);
    },
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
