import type { Queries } from '../schema/queries.ts';
import type { ApprovedRemovals, CheckRequest, SinkCheck } from '../schema/sink-tables.ts';
import { LAST_UNUSUAL } from './runs.ts';
import { createLegWriter, FIRST_LEG } from './sink-legs.ts';
import type { ParkedState, Refused, SinkGap, SinkReader, SinkRow, SinkState } from './sink-rows.ts';

/** Approvals that a sink keeps at most. For safety: a run that waits for one keeps later runs waiting, too. */
const APPROVALS = 100;

/** What a sink confirmed. */
export type Ack = Pick<SinkRow, 'cursor' | 'delivered' | 'rate'> & { readonly at: number };

/** A sink of the settings. */
export type NamedSink = Pick<SinkRow, 'name' | 'kind' | 'address' | 'identity'>;

/** Writes that several of the writers below make. */
function createSharedWrites({ write }: Queries) {
  // An event that is parked already stays as it is when it would have to wait.
  const park = write(
    `INSERT INTO parked (sink_id, seq, vbid, state, reason, at, change)
     VALUES (:id, :seq, :vbid, :state, :reason, :at, :change)
     ON CONFLICT (sink_id, seq) DO UPDATE SET state = excluded.state, reason = excluded.reason, at = excluded.at
       WHERE excluded.state <> 'waiting'`,
  );

  return {
    setError: write<[error: string | null, atMs: number | null, retryAtMs: number | null, id: number]>(
      'UPDATE sinks SET error = ?, error_at = ?, retry_at = ? WHERE id = ?',
    ),
    setState: write<[state: SinkState, id: number]>(
      'UPDATE sinks SET state = ?, retry_at = NULL, stopped_at = NULL WHERE id = ?',
    ),
    addGap: write<[SinkGap & { id: number }]>(
      `INSERT INTO sink_gaps (sink_id, after, up_to, at) VALUES (:id, :after, :upTo, :at)
       ON CONFLICT (sink_id, after) DO UPDATE SET up_to = excluded.up_to, at = excluded.at`,
    ),
    park: (id: number, { seq, reason, at, change }: Refused, state: ParkedState) =>
      park({ id, seq, vbid: change.vbid, state, reason, at, change: JSON.stringify(change) }),
    setParkedState: write<[state: ParkedState, reason: string, atMs: number, id: number, seq: number]>(
      'UPDATE parked SET state = ?, reason = ?, at = ? WHERE sink_id = ? AND seq = ?',
    ),
    /** Changes the state of later events of the product of `seq`. */
    setLaterState: write<[{ id: number; seq: number; from: ParkedState; to: ParkedState }]>(
      `UPDATE parked SET state = :to, freed = (SELECT generation FROM sinks WHERE id = :id)
         WHERE sink_id = :id AND seq > :seq AND state = :from
           AND vbid = (SELECT vbid FROM parked WHERE sink_id = :id AND seq = :seq)`,
    ),
    dropParkedAfter: write<[id: number, seq: number]>('DELETE FROM parked WHERE sink_id = ? AND seq > ?'),
  };
}

export type SinkWriter = ReturnType<typeof createSinkWriter>;

/** What the relay writes about sinks. */
export function createSinkWriter(queries: Queries, reader: SinkReader) {
  const { write } = queries;
  const { setError, addGap, park, setParkedState, setLaterState } = createSharedWrites(queries);
  const dropUnlessParked = write(
    `DELETE FROM sinks WHERE id = :id AND NOT EXISTS (SELECT 1 FROM parked WHERE sink_id = :id)
       AND NOT EXISTS (SELECT 1 FROM sink_gaps WHERE sink_id = :id)`,
  );
  const setAside = write('UPDATE sinks SET name = :former, configured = 0 WHERE id = :id');
  // A random id, because marks of stores have it: the id of a row that was removed must not come again.
  const configure = write(
    `INSERT INTO sinks (id, name, kind, address, identity, generation, legs, state, approved_run)
     VALUES (abs(random() >> 11), :name, :kind, :address, :identity, 0, ${FIRST_LEG}, :state, ${LAST_UNUSUAL})
     ON CONFLICT (name) DO UPDATE SET configured = 1, kind = :kind, address = :address`,
  );
  const configureOnly = write(
    'UPDATE sinks SET configured = 0 WHERE configured = 1 AND name NOT IN (SELECT value FROM json_each(?))',
  );
  const ack = write(
    `UPDATE sinks SET cursor = :cursor, delivered = delivered + :delivered, rate = :rate, acked_at = :at, error = NULL,
       error_at = NULL, retry_at = NULL WHERE id = :id AND :generation >= coalesce(legs ->> '$[#-1].generation', 0)`,
  );
  const setPosition = write('UPDATE sinks SET generation = :generation, cursor = :cursor WHERE id = :id');
  const noteFillEnd = write<[cursor: number | null, id: number]>('UPDATE sinks SET fill_end = ? WHERE id = ?');
  const stop = write("UPDATE sinks SET state = 'stopped', stopped_at = ? WHERE id = ?");
  const { fill, sendNewest: _, ...legs } = createLegWriter(queries, reader);
  const noteCheck = write(
    `UPDATE sinks SET checked = :check, check_asked = CASE check_asked ->> 'id' WHEN :check ->> 'id' THEN NULL ELSE check_asked END
     WHERE id = :id`,
  );
  const dropUnskippedAfter = write("DELETE FROM parked WHERE sink_id = ? AND seq > ? AND state <> 'skipped'");
  const ofSeqs = 'WHERE sink_id = ? AND seq IN (SELECT value FROM json_each(?))';
  const unpark = write(`DELETE FROM parked ${ofSeqs}`);
  const setFreed = write(`UPDATE parked SET state = ? ${ofSeqs}`);

  const refuseAllReady = write(
    `UPDATE parked SET reason = :reason, at = :at, state = iif(seq IN (SELECT min(seq) FROM parked WHERE sink_id = :id
         AND state IN ('refused', 'waiting', 'ready') GROUP BY vbid), 'refused', 'waiting')
       WHERE sink_id = :id AND state = 'ready'`,
  );

  /** Takes its name from a store. A row with parked events or gaps stays, under a name that no setting can have. */
  function leaveName({ id, name }: SinkRow): void {
    if (dropUnlessParked({ id }) === 1) return;
    let former = `${name}-former`;
    for (let number = 2; reader.get(former) !== undefined; number++) former = `${name}-former-${number}`;
    setAside({ id, former });
  }

  return {
    ...reader,
    ...legs,
    /**
     * Notes that the settings name this sink. If the name means another store than before, that store gets a row of its
     * own, because events that were parked for one store must not be delivered to another. A new row starts with the
     * products as of now. A name whose address is not valid (without an identity) keeps its store.
     */
    configure: ({ name, ...named }: NamedSink): void => {
      const before = reader.get(name);
      const { kind, address, identity } = named.identity === '' && before !== undefined ? before : named;
      if (before !== undefined && before.identity !== identity) leaveName(before);
      // An operator who paused the name has not allowed deliveries to another store.
      configure({ name, kind, address, identity, state: before?.state === 'paused' ? 'paused' : 'running' });
    },
    /** Notes which sinks the settings no longer name: these no longer hold the log. */
    configureOnly: (sinks: readonly Pick<NamedSink, 'name'>[]) =>
      configureOnly(JSON.stringify(sinks.map(({ name }) => name))),
    /** @returns false, without writing, if delivery has restarted meanwhile */
    ack: ({ id, generation }: Pick<SinkRow, 'id' | 'generation'>, confirmed: Ack): boolean =>
      ack({ ...confirmed, id, generation }) === 1,
    /** Notes how far an opened sink is. Forgets later parked events: they are judged again when they are read again. */
    setPosition: (id: number, generation: number, cursor: number): void => {
      setPosition({ id, generation, cursor });
      dropUnskippedAfter(id, cursor);
    },
    /** Fills a sink again, because its store has something else than was believed. @param above the generation that it has */
    refill: (sink: SinkRow, above: number, what: 'first' | 'newest' = 'newest'): void => {
      fill(sink, what, above);
      // Events that are delivered again are judged again.
      dropUnskippedAfter(sink.id, 0);
    },
    /** Notes at which cursor a fill has ended; null: it has not. */
    noteFillEnd: (id: number, cursor: number | null) => noteFillEnd(cursor, id),
    /** Notes a comparison, and that it is not asked any more. */
    noteCheck: (id: number, check: SinkCheck) => noteCheck({ id, check: JSON.stringify(check) }),
    clearError: (id: number) => setError(null, null, null, id),
    fail: (id: number, error: string, atMs: number, retryAtMs: number | null) => setError(error, atMs, retryAtMs, id),
    /** @param seq the refused event before which it stops; null if it stops for another reason */
    stop: (id: number, error: string, atMs: number, seq: number | null): void => {
      setError(error, atMs, null, id);
      stop(seq, id);
    },
    park: (id: number, event: Refused) => park(id, event, 'refused'),
    /** Parks changes that wait for an earlier one of their product. Events that are parked already stay as they are. */
    parkWaiting: (id: number, events: readonly Refused[]): void => {
      for (const event of events) park(id, event, 'waiting');
    },
    /** Parks a freed event again as refused, and all later events of its product as waiting. */
    refuseReady: (id: number, seq: number, reason: string, atMs: number): void => {
      setLaterState({ id, seq, from: 'ready', to: 'waiting' });
      setParkedState('refused', reason, atMs, id, seq);
    },
    /** Parks every freed event again: the first one of a product as refused, later ones as waiting. */
    refuseAllReady: (id: number, reason: string, at: number) => refuseAllReady({ id, reason, at }),
    unpark: (id: number, seqs: readonly number[]) => unpark(id, JSON.stringify(seqs)),
    /** Notes that freed events were delivered, or that the sink has lost them. */
    setFreed: (id: number, seqs: readonly number[], state: 'ready' | 'delivered') =>
      setFreed(state, id, JSON.stringify(seqs)),
    forgetFreed: write<[id: number, beforeMs: number]>(
      "DELETE FROM parked WHERE sink_id = ? AND at < ? AND state = 'delivered'",
    ),
    addGap,
  };
}

const SKIPPED = 'skipped by the operator';

/** SQL: notes that an operator has approved something of this sink, if no approval is noted. No run has the number 0. */
const NOTE_APPROVAL = `approved_removals = iif(approved_removals = '[]', '[{"run":0,"removed":0}]', approved_removals)`;

/** What operators decide about sinks. The relay follows: it compares states and generations at every turn. */
export function createSinkRequests(queries: Queries, reader: SinkReader) {
  const { write } = queries;
  const { setState, park, setParkedState, setLaterState, dropParkedAfter } = createSharedWrites(queries);
  const { fill, beginChanges, sendNewest } = createLegWriter(queries, reader);
  const askCheck = write<[request: string | null, id: number]>('UPDATE sinks SET check_asked = ? WHERE id = ?');
  const nextGeneration = write('UPDATE sinks SET generation = generation + 1, retry_at = NULL WHERE id = ?');
  const freeEvents = write(
    `UPDATE parked SET state = 'ready', freed = (SELECT generation FROM sinks WHERE id = :id)
       WHERE sink_id = :id AND (state = 'waiting' OR state = :also)`,
  );
  const skipRefused = write(
    `UPDATE parked SET state = 'skipped', reason = '${SKIPPED}', at = ? WHERE sink_id = ? AND state = 'refused'`,
  );
  const dropGaps = write('DELETE FROM sink_gaps WHERE sink_id = ?');
  const dropSink = write('DELETE FROM sinks WHERE id = ?');
  const approveRemovals = write("UPDATE sinks SET state = 'running', held = NULL, approved_removals = ? WHERE id = ?");
  const rename = write<[name: string, id: number]>('UPDATE sinks SET name = ? WHERE id = ?');

  return {
    ...reader,
    setState: (id: number, state: SinkState) => setState(state, id),
    /** Asks the relay to compare the store with its source; null: not any more. */
    askCheck: (id: number, request: CheckRequest | null) => askCheck(request && JSON.stringify(request), id),
    /** Restarts delivery after a change; null: first delivers each product as it is now, also over another mirror's. */
    replay: (sink: SinkRow, after: number | null): void => {
      if (after === null) fill(sink, 'replacement');
      else beginChanges(sink, after);
      dropParkedAfter(sink.id, after ?? 0);
    },
    /** Skips a parked event, and frees the events of its product that wait for it. */
    skip: (id: number, seq: number, atMs: number): void => {
      nextGeneration(id);
      setLaterState({ id, seq, from: 'waiting', to: 'ready' });
      setParkedState('skipped', SKIPPED, atMs, id, seq);
    },
    /** Skips every refused event, and frees the events that wait for one. @returns how many were skipped */
    skipAll: (id: number, atMs: number): number => {
      const skipped = skipRefused(atMs, id);
      // What is delivered now is not sent again in vain.
      if (skipped === 0) return 0;
      nextGeneration(id);
      freeEvents({ id, also: null });
      return skipped;
    },
    /** Notes an event that is not parked as skipped. */
    skipUnparked: (id: number, event: Pick<Refused, 'seq' | 'at' | 'change'>) =>
      park(id, { ...event, reason: SKIPPED }, 'skipped'),
    /** Frees all refused events and those that wait for them, so that they are delivered again. @returns how many */
    retry: (id: number): number => {
      nextGeneration(id);
      return freeEvents({ id, also: 'refused' });
    },
    /** Allows a run to take so many products away, and lets the sink go on. @param sink as it is in this transaction */
    approveRemovals: ({ id, approvedRemovals }: SinkRow, approved: ApprovedRemovals) =>
      approveRemovals(JSON.stringify([...approvedRemovals, approved].slice(-APPROVALS)), id),
    /** Approves a changed view, or what the end of a fill removes. The relay carries it out. */
    approveHeld: write<[id: number]>(
      `UPDATE sinks SET state = 'running', held = json_set(held, '$.isApproved', json('true')), ${NOTE_APPROVAL} WHERE id = ?`,
    ),
    /** Approves the unusual runs so far, and the run that holds the sink. */
    approveRuns: write<[id: number]>(
      `UPDATE sinks SET state = 'running', held = NULL, ${NOTE_APPROVAL},
         approved_run = max(${LAST_UNUSUAL}, coalesce(held ->> '$.run', 0)) WHERE id = ?`,
    ),
    sendNewest,
    rename: (id: number, name: string) => rename(name, id),
    /** Removes a sink with all its parked events. */
    forget: (id: number): void => {
      dropParkedAfter(id, -1);
      dropGaps(id);
      dropSink(id);
    },
  };
}

/** What the keeper writes about sinks when it prunes the change log. */
export function createSinkPruning(queries: Queries, reader: SinkReader) {
  const { setError, setState, addGap } = createSharedWrites(queries);
  return {
    ...reader,
    disable: (id: number, error: string, atMs: number): void => {
      setError(error, atMs, null, id);
      setState('disabled', id);
    },
    addGap,
  };
}
