import type { Database } from 'better-sqlite3';
import type { RecordedChange } from '../catalog/event.ts';

/**
 * ```
 *            pause            refused for good, by policy; 410; another mirror's target
 * running ─────────► paused      running ─────────► stopped
 *    ▲                  │           ▲                  │       the log would grow beyond its cap
 *    └───── resume ─────┘           └───── resume ─────┘       any ─────────► disabled ── resume ──► running
 * ```
 * All but `disabled` hold the change log: what they have not confirmed is not pruned.
 */
export type SinkState = 'running' | 'paused' | 'stopped' | 'disabled';

/** A sink as the mirror knows it. Times are milliseconds since 1970. */
export interface SinkRow {
  readonly id: number;
  readonly name: string;
  readonly kind: string;
  /** Where it is, without credentials. */
  readonly address: string;
  /** Another one is another store. */
  readonly identity: string;
  /** False where the settings no longer name it. */
  readonly configured: boolean;
  readonly state: SinkState;
  /** Grows when delivery begins anew. */
  readonly generation: number;
  /** Since when, and after which change, it began anew. */
  readonly beganGeneration: number;
  readonly beganCursor: number;
  /** Whether it was ever asked how far it is, since it was configured or moved. */
  readonly opened: boolean;
  /** Newest `seq` that the sink has confirmed. */
  readonly cursor: number;
  /** Up to here only each product's newest change is delivered. */
  readonly backfillTo: number;
  readonly backfillRemoved: boolean;
  readonly takeOver: boolean;
  readonly delivered: number;
  /** Events a second, lately. */
  readonly rate: number;
  readonly ackedAt: number | null;
  readonly error: string | null;
  readonly errorAt: number | null;
  readonly retryAt: number | null;
  /** The event before which it stopped because it was refused. */
  readonly stoppedAt: number | null;
}

/** `delivered` were set free, and the sink has them: kept until it has more, as it may lose its tail. */
export type ParkedState = 'refused' | 'waiting' | 'ready' | 'delivered' | 'skipped';

export interface ParkedEvent {
  readonly seq: number;
  readonly vbid: string;
  readonly state: ParkedState;
  readonly reason: string;
  readonly at: number;
  /** Since which generation it is ready. */
  readonly freed: number;
  readonly change: RecordedChange;
}

/** What is to be parked. */
export type Refused = Pick<ParkedEvent, 'seq' | 'reason' | 'at' | 'change'>;

/** Records that a sink was not told of. */
export interface SinkGap {
  readonly after: number;
  readonly upTo: number;
  readonly at: number;
}

/** What a sink confirmed. */
export interface Ack {
  readonly cursor: number;
  readonly delivered: number;
  readonly rate: number;
  readonly at: number;
}

/** Downstream stores and how far each is. Call what writes inside a write transaction. */
export interface SinkStore {
  list(): SinkRow[];
  get(name: string): SinkRow | undefined;
  /**
   * Notes that the settings name this sink. One that is new, or that is another store than before, begins with the
   * products as of now. What the same store refused under a name that is not configured any more is kept.
   */
  configure(sink: Pick<SinkRow, 'name' | 'kind' | 'address' | 'identity'> & { readonly formerIdentity?: string }): void;
  /** Notes which sinks the settings do not name any more: they no longer hold the log. */
  configureOnly(names: readonly string[]): void;
  /** @returns false where delivery has begun anew meanwhile: then nothing is written */
  ack(sink: Pick<SinkRow, 'id' | 'generation'>, ack: Ack): boolean;
  /**
   * Notes how far an opened sink is. What is parked behind that is forgotten: it is judged again when it is read again.
   * @param more `filledTo`: up to here at most it is being filled, after it, it gets every change; `began`: generations
   *   before this one do not count
   */
  reconcile(id: number, generation: number, cursor: number, more?: { filledTo?: number; began?: number }): void;
  /** Fills the sink again with the products as of now: its store lost what it had confirmed. */
  refill(id: number): void;
  /** The sink answers again. */
  clearError(id: number): void;
  fail(id: number, error: string, atMs: number, retryAtMs: number | null): void;
  setState(id: number, state: SinkState): void;
  /** @param seq the event before which it stops, where that is why */
  stop(id: number, error: string, atMs: number, seq: number | null): void;
  /** Begins anew after `cursor`; with `backfill`, with the products as of now, tombstones included. */
  replay(id: number, cursor: number, backfill: boolean): void;

  parked(id: number, state?: ParkedState, limit?: number): ParkedEvent[];
  /** Those that are refused, wait, or are ready. */
  parkedCount(id: number): number;
  /** Events that were set free, in order: `ready`, or `delivered`. */
  freed(id: number, state: 'ready' | 'delivered'): Pick<ParkedEvent, 'seq' | 'freed'>[];
  /** The first ones that are ready: at least one where there is one, and no more characters than asked otherwise. */
  ready(id: number, most: { readonly events: number; readonly chars: number }): ParkedEvent[];
  stateOf(id: number, seq: number): ParkedState | undefined;
  /** Products of which an event is parked, with its number: later ones have to wait. */
  blocked(id: number): Map<string, number>;
  skipped(id: number): Set<number>;
  park(id: number, event: Refused, state: 'refused' | 'skipped'): void;
  /** Sets changes aside that wait for an earlier one; what is parked already stays as it is. */
  parkWaiting(id: number, events: readonly Refused[]): void;
  /** Parks what was set free: `seq`, and as waiting all later events of its product. */
  refuseReady(id: number, seq: number, reason: string, atMs: number): void;
  unpark(id: number, seqs: readonly number[]): void;
  /** What was set free is delivered, or is not there any more. */
  setFreed(id: number, seqs: readonly number[], state: 'ready' | 'delivered'): void;
  /** What was delivered after it had been parked before `beforeMs` is not kept any longer. */
  forgetFreed(id: number, beforeMs: number): void;
  /** Skips one event; those of its product that waited for it are free. */
  skip(id: number, seq: number, atMs: number): void;
  /** Frees every refused event and those that wait for it, so that they are delivered again. @returns how many */
  retry(id: number): number;
  /** Removes a sink with all that is parked for it. */
  forget(id: number): void;

  gaps(id: number): SinkGap[];
  addGap(id: number, gap: SinkGap): void;
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

const LAST_SEQ = `coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'changes'), 0)`;

function prepareSinks(sqlite: Database) {
  return {
    list: sqlite.prepare<[], Raw>(`SELECT ${ROW} FROM sinks ORDER BY name`),
    get: sqlite.prepare<[string], Raw>(`SELECT ${ROW} FROM sinks WHERE name = ?`),
    configure: sqlite.prepare(
      `INSERT INTO sinks (name, kind, address, identity, backfill_to)
       VALUES (:name, :kind, :address, :identity, ${LAST_SEQ})
       ON CONFLICT (name) DO UPDATE SET configured = 1, kind = :kind, address = :address,
         identity = :identity,
         cursor = CASE WHEN identity = :identity THEN cursor ELSE 0 END,
         backfill_to = CASE WHEN identity = :identity THEN backfill_to ELSE ${LAST_SEQ} END,
         backfill_removed = CASE WHEN identity = :identity THEN backfill_removed ELSE 0 END,
         began_generation = CASE WHEN identity = :identity THEN began_generation ELSE 1 END,
         began_cursor = CASE WHEN identity = :identity THEN began_cursor ELSE 0 END,
         take_over = CASE WHEN identity = :identity THEN take_over ELSE 0 END,
         opened = CASE WHEN identity = :identity THEN opened ELSE 0 END`,
    ),
    rename: sqlite.prepare('UPDATE sinks SET identity = ? WHERE identity = ?'),
    former: sqlite
      .prepare<{ identity: string; name: string }, number>(
        `SELECT id FROM sinks WHERE identity = :identity AND name <> :name AND configured = 0
         ORDER BY acked_at DESC LIMIT 1`,
      )
      .pluck(),
    unconfigure: sqlite.prepare('UPDATE sinks SET configured = 0 WHERE name = ?'),
    ack: sqlite.prepare(
      `UPDATE sinks SET cursor = :cursor, delivered = delivered + :delivered, rate = :rate, acked_at = :at, error = NULL,
         error_at = NULL, retry_at = NULL, take_over = 0 WHERE id = :id AND :generation >= began_generation`,
    ),
    reconcile: sqlite.prepare(
      `UPDATE sinks SET generation = :generation, cursor = :cursor, backfill_to = min(backfill_to, :filled), opened = 1,
         began_generation = max(began_generation, :began) WHERE id = :id`,
    ),
    fail: sqlite.prepare('UPDATE sinks SET error = ?, error_at = ?, retry_at = ? WHERE id = ?'),
    setState: sqlite.prepare('UPDATE sinks SET state = ?, retry_at = NULL, stopped_at = NULL WHERE id = ?'),
    opened: sqlite.prepare<[number], number>('SELECT opened FROM sinks WHERE id = ?').pluck(),
    stop: sqlite.prepare("UPDATE sinks SET state = 'stopped', stopped_at = ? WHERE id = ?"),
    replay: sqlite.prepare(
      `UPDATE sinks SET generation = generation + 1, began_generation = generation + 1, began_cursor = :cursor,
         cursor = :cursor, take_over = :backfill, retry_at = NULL,
         backfill_to = CASE :backfill WHEN 1 THEN ${LAST_SEQ} ELSE min(backfill_to, :cursor) END,
         backfill_removed = :backfill WHERE id = :id`,
    ),
    refill: sqlite.prepare(
      `UPDATE sinks SET cursor = 0, backfill_to = ${LAST_SEQ}, backfill_removed = 0, opened = 1 WHERE id = ?`,
    ),
    remove: sqlite.prepare('DELETE FROM sinks WHERE id = ?'),
    renew: sqlite.prepare('UPDATE sinks SET generation = generation + 1, retry_at = NULL WHERE id = ?'),
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
    add: sqlite.prepare(
      `INSERT INTO parked (sink_id, seq, vbid, state, reason, at, change) VALUES (?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (sink_id, seq) DO UPDATE SET state = excluded.state, reason = excluded.reason, at = excluded.at`,
    ),
    addNew: sqlite.prepare(
      `INSERT OR IGNORE INTO parked (sink_id, seq, vbid, state, reason, at, change) VALUES (?, ?, ?, ?, ?, ?, ?)`,
    ),
    remove: sqlite.prepare('DELETE FROM parked WHERE sink_id = ? AND seq = ?'),
    removeAll: sqlite.prepare('DELETE FROM parked WHERE sink_id = ? AND seq > ?'),
    forgetAfter: sqlite.prepare("DELETE FROM parked WHERE sink_id = ? AND seq > ? AND state <> 'skipped'"),
    move: sqlite.prepare('UPDATE OR IGNORE parked SET sink_id = ? WHERE sink_id = ?'),
    forgetFreed: sqlite.prepare("DELETE FROM parked WHERE sink_id = ? AND at < ? AND state = 'delivered'"),
    setFreed: sqlite.prepare('UPDATE parked SET state = ? WHERE sink_id = ? AND seq = ?'),
    setState: sqlite.prepare('UPDATE parked SET state = ?, reason = ?, at = ? WHERE sink_id = ? AND seq = ?'),
    free: sqlite.prepare(
      `UPDATE parked SET state = 'ready', freed = (SELECT generation FROM sinks WHERE id = :sink)
         WHERE sink_id = :sink AND state IN ('refused', 'waiting')`,
    ),
    /** Later events of the product of `seq`. */
    later: sqlite.prepare(
      `UPDATE parked SET state = :to, freed = (SELECT generation FROM sinks WHERE id = :sink)
         WHERE sink_id = :sink AND seq > :seq AND state = :from
           AND vbid = (SELECT vbid FROM parked WHERE sink_id = :sink AND seq = :seq)`,
    ),
  };
}

function eventOf(raw: RawParked): ParkedEvent {
  return { ...raw, change: JSON.parse(raw.change) as RecordedChange };
}

export function createSinkStore(sqlite: Database): SinkStore {
  const sinks = prepareSinks(sqlite);
  const parked = prepareParked(sqlite);
  const gaps = sqlite.prepare<[number], SinkGap>(
    'SELECT after, up_to AS upTo, at FROM sink_gaps WHERE sink_id = ? ORDER BY after',
  );
  const removeGaps = sqlite.prepare('DELETE FROM sink_gaps WHERE sink_id = ?');
  const addGap = sqlite.prepare(
    `INSERT INTO sink_gaps (sink_id, after, up_to, at) VALUES (?, ?, ?, ?)
     ON CONFLICT (sink_id, after) DO UPDATE SET up_to = excluded.up_to, at = excluded.at`,
  );

  function values(id: number, { seq, reason, at, change }: Refused, state: ParkedState): unknown[] {
    return [id, seq, change.vbid, state, reason, at, JSON.stringify(change)];
  }

  function list(): SinkRow[] {
    return sinks.list.all().map(rowOf);
  }

  return {
    list,
    get: (name) => {
      const raw = sinks.get.get(name);
      return raw === undefined ? undefined : rowOf(raw);
    },
    configure: ({ name, kind, address, identity, formerIdentity }) => {
      if (formerIdentity !== undefined) sinks.rename.run(identity, formerIdentity);
      const known = sinks.get.get(name);
      sinks.configure.run({ name, kind, address, identity });
      const former = known === undefined ? sinks.former.get({ identity, name }) : undefined;
      if (former !== undefined) parked.move.run(sinks.get.get(name)?.id, former);
    },
    configureOnly: (names) => {
      for (const { name, configured } of list()) {
        if (configured && !names.includes(name)) sinks.unconfigure.run(name);
      }
    },
    ack: ({ id, generation }, { cursor, delivered, rate, at }) =>
      sinks.ack.run({ id, generation, cursor, delivered, rate, at }).changes === 1,
    reconcile: (id, generation, cursor, { filledTo = Number.MAX_SAFE_INTEGER, began = 0 } = {}) => {
      // What another store refused, or was not to get, says nothing of one that has never been opened.
      const forget = sinks.opened.get(id) === 1 ? parked.forgetAfter : parked.removeAll;
      sinks.reconcile.run({ id, generation, cursor, filled: filledTo, began });
      forget.run(id, cursor);
    },
    refill: (id) => {
      sinks.refill.run(id);
      // What is delivered again is judged again.
      parked.forgetAfter.run(id, 0);
    },
    clearError: (id) => {
      sinks.fail.run(null, null, null, id);
    },
    fail: (id, error, atMs, retryAtMs) => {
      sinks.fail.run(error, atMs, retryAtMs, id);
    },
    setState: (id, state) => {
      sinks.setState.run(state, id);
    },
    stop: (id, error, atMs, seq) => {
      sinks.fail.run(error, atMs, null, id);
      sinks.stop.run(seq, id);
    },
    replay: (id, cursor, backfill) => {
      sinks.replay.run({ id, cursor, backfill: backfill ? 1 : 0 });
      // What is delivered again is judged again.
      parked.removeAll.run(id, cursor);
    },
    parked: (id, state, limit = -1) => parked.all.all({ id, state: state ?? null, limit }).map(eventOf),
    blocked: (id) => new Map(parked.blocked.all(id) as unknown as [string, number][]),
    skipped: (id) => new Set(parked.skipped.all(id)),
    parkedCount: (id) => parked.count.get(id) ?? 0,
    freed: (id, state) => parked.freed.all(id, state),
    ready: (id, { events, chars }) => parked.ready.all({ id, events, chars }).map(eventOf),
    setFreed: (id, seqs, state) => {
      for (const seq of seqs) parked.setFreed.run(state, id, seq);
    },
    forgetFreed: (id, beforeMs) => {
      parked.forgetFreed.run(id, beforeMs);
    },
    stateOf: (id, seq) => parked.stateOf.get(id, seq),
    park: (id, event, state) => {
      parked.add.run(values(id, event, state));
    },
    parkWaiting: (id, events) => {
      // Among them is the refused event itself.
      for (const event of events) parked.addNew.run(values(id, event, 'waiting'));
    },
    refuseReady: (id, seq, reason, atMs) => {
      parked.later.run({ sink: id, seq, from: 'ready', to: 'waiting' });
      parked.setState.run('refused', reason, atMs, id, seq);
    },
    unpark: (id, seqs) => {
      for (const seq of seqs) parked.remove.run(id, seq);
    },
    skip: (id, seq, atMs) => {
      sinks.renew.run(id);
      parked.later.run({ sink: id, seq, from: 'waiting', to: 'ready' });
      parked.setState.run('skipped', 'skipped by the operator', atMs, id, seq);
    },
    retry: (id) => {
      sinks.renew.run(id);
      return parked.free.run({ sink: id }).changes;
    },
    forget: (id) => {
      parked.removeAll.run(id, -1);
      removeGaps.run(id);
      sinks.remove.run(id);
    },
    gaps: (id) => gaps.all(id),
    addGap: (id, { after, upTo, at }) => {
      addGap.run(id, after, upTo, at);
    },
  };
}
