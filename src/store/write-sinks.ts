import type { Database } from 'better-sqlite3';
import type { ParkedState, Refused, SinkGap, SinkReader, SinkRow, SinkState } from './sinks.ts';

/** What a sink confirmed. */
export interface Ack {
  readonly cursor: number;
  readonly delivered: number;
  readonly rate: number;
  readonly at: number;
}

export interface SinkPosition {
  /** The sink is being filled up to here at most; from here on it gets every change. */
  readonly filledTo?: number;
  /** Generations before this one do not count. */
  readonly began?: number;
}

/** What the relay writes about sinks. */
export interface SinkWriter extends SinkReader {
  /**
   * Notes that the settings name this sink. A sink that is new, or that is another store than before, starts with the
   * products as of now. Events that the same store refused under a former name stay parked.
   */
  configure(sink: Pick<SinkRow, 'name' | 'kind' | 'address' | 'identity'> & { readonly formerIdentity?: string }): void;
  /** Notes which sinks the settings no longer name: these no longer hold the log. */
  configureOnly(names: readonly string[]): void;
  /** @returns false, without writing, if delivery has restarted meanwhile */
  ack(sink: Pick<SinkRow, 'id' | 'generation'>, ack: Ack): boolean;
  /** Notes how far an opened sink is. Forgets later parked events: they are judged again when they are read again. */
  reconcile(id: number, generation: number, cursor: number, position?: SinkPosition): void;
  /** Fills the sink again with the products as of now: its store lost events that it had confirmed. */
  refill(id: number): void;
  /** Notes that the sink works again. */
  clearError(id: number): void;
  fail(id: number, error: string, atMs: number, retryAtMs: number | null): void;
  /** @param seq the refused event before which it stops; null if it stops for another reason */
  stop(id: number, error: string, atMs: number, seq: number | null): void;
  park(id: number, event: Refused): void;
  /** Parks changes that wait for an earlier one of their product. Events that are parked already stay as they are. */
  parkWaiting(id: number, events: readonly Refused[]): void;
  /** Parks a freed event again as refused, and all later events of its product as waiting. */
  refuseReady(id: number, seq: number, reason: string, atMs: number): void;
  unpark(id: number, seqs: readonly number[]): void;
  /** Notes that freed events were delivered, or that the sink has lost them. */
  setFreed(id: number, seqs: readonly number[], state: 'ready' | 'delivered'): void;
  /** Drops delivered events that were parked before `beforeMs`. */
  forgetFreed(id: number, beforeMs: number): void;
  addGap(id: number, gap: SinkGap): void;
}

/** What operators decide about sinks. The relay follows: it compares states and generations at every turn. */
export interface SinkRequests extends SinkReader {
  setState(id: number, state: SinkState): void;
  /** Restarts delivery after `cursor`; with `backfill`, first delivers the current products, tombstones included. */
  replay(id: number, cursor: number, backfill: boolean): void;
  /** Skips a parked event, and frees the events of its product that wait for it. */
  skip(id: number, seq: number, atMs: number): void;
  /** Notes an event that is not parked as skipped. */
  skipUnparked(id: number, event: Pick<Refused, 'seq' | 'at' | 'change'>): void;
  /** Frees all refused events and those that wait for them, so that they are delivered again. @returns how many */
  retry(id: number): number;
  /** Removes a sink with all its parked events. */
  forget(id: number): void;
}

/** What the keeper writes about sinks when it prunes the change log. */
export interface SinkPruning extends SinkReader {
  disable(id: number, error: string, atMs: number): void;
  addGap(id: number, gap: SinkGap): void;
}

const LAST_SEQ = `coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'changes'), 0)`;

function prepareSinks(sqlite: Database) {
  return {
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

function prepareParked(sqlite: Database) {
  return {
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

const SKIPPED = 'skipped by the operator';

type SinkWrites = SinkWriter & SinkRequests & SinkPruning;

export function createSinkWriter(sqlite: Database, reader: SinkReader): SinkWrites {
  const sinks = prepareSinks(sqlite);
  const parked = prepareParked(sqlite);
  const removeGaps = sqlite.prepare('DELETE FROM sink_gaps WHERE sink_id = ?');
  const addGap = sqlite.prepare(
    `INSERT INTO sink_gaps (sink_id, after, up_to, at) VALUES (?, ?, ?, ?)
     ON CONFLICT (sink_id, after) DO UPDATE SET up_to = excluded.up_to, at = excluded.at`,
  );

  function values(id: number, { seq, reason, at, change }: Refused, state: ParkedState): unknown[] {
    return [id, seq, change.vbid, state, reason, at, JSON.stringify(change)];
  }

  return {
    ...reader,
    configure: ({ name, kind, address, identity, formerIdentity }) => {
      if (formerIdentity !== undefined) sinks.rename.run(identity, formerIdentity);
      const known = reader.get(name);
      sinks.configure.run({ name, kind, address, identity });
      const former = known === undefined ? sinks.former.get({ identity, name }) : undefined;
      if (former !== undefined) parked.move.run(reader.get(name)?.id, former);
    },
    configureOnly: (names) => {
      for (const { name, configured } of reader.list()) {
        if (configured && !names.includes(name)) sinks.unconfigure.run(name);
      }
    },
    ack: ({ id, generation }, { cursor, delivered, rate, at }) =>
      sinks.ack.run({ id, generation, cursor, delivered, rate, at }).changes === 1,
    reconcile: (id, generation, cursor, { filledTo = Number.MAX_SAFE_INTEGER, began = 0 } = {}) => {
      // Parked and skipped events of another store do not apply to one that was never opened.
      const forget = sinks.opened.get(id) === 1 ? parked.forgetAfter : parked.removeAll;
      sinks.reconcile.run({ id, generation, cursor, filled: filledTo, began });
      forget.run(id, cursor);
    },
    refill: (id) => {
      sinks.refill.run(id);
      // Events that are delivered again are judged again.
      parked.forgetAfter.run(id, 0);
    },
    clearError: (id) => sinks.fail.run(null, null, null, id),
    fail: (id, error, atMs, retryAtMs) => sinks.fail.run(error, atMs, retryAtMs, id),
    setState: (id, state) => sinks.setState.run(state, id),
    disable: (id, error, atMs) => {
      sinks.fail.run(error, atMs, null, id);
      sinks.setState.run('disabled', id);
    },
    stop: (id, error, atMs, seq) => {
      sinks.fail.run(error, atMs, null, id);
      sinks.stop.run(seq, id);
    },
    replay: (id, cursor, backfill) => {
      sinks.replay.run({ id, cursor, backfill: backfill ? 1 : 0 });
      // Events that are delivered again are judged again.
      parked.removeAll.run(id, cursor);
    },
    setFreed: (id, seqs, state) => {
      for (const seq of seqs) parked.setFreed.run(state, id, seq);
    },
    forgetFreed: (id, beforeMs) => parked.forgetFreed.run(id, beforeMs),
    park: (id, event) => parked.add.run(values(id, event, 'refused')),
    skipUnparked: (id, event) => parked.add.run(values(id, { ...event, reason: SKIPPED }, 'skipped')),
    parkWaiting: (id, events) => {
      // The refused event itself is among them.
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
      parked.setState.run('skipped', SKIPPED, atMs, id, seq);
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
    addGap: (id, { after, upTo, at }) => addGap.run(id, after, upTo, at),
  };
}
