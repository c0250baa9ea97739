import { randomBytes } from 'node:crypto';
import type { Queries } from '../schema/queries.ts';
import type { HeldSink, SinkLeg } from '../schema/sink-tables.ts';
import { LAST_SEQ } from './changes.ts';
import type { SinkReader, SinkRow } from './sink-rows.ts';

/*
 * The legs of a sink: what each restart of delivery begins. A difference starts only from a finished leg of which the store
 * has every event; any other restart that sends products again is a fill, whose end makes a store that can list right.
 */

/** Random bytes of a tag: two views of a store get the same ones once in 2^48. */
const TAG_BYTES = 6;

type ViewText = Pick<SinkLeg, 'where' | 'fields'>;
type Legged = Pick<SinkRow, 'cursor' | 'legs'>;

/** The leg of a sink that the mirror does not know. */
const NONE: SinkLeg = { generation: 1, what: 'changes', from: 0, to: 0, where: null, fields: null, tag: null };

/** SQL of the legs of a new sink: one without a view. Its generation comes when its view is known. */
export const FIRST_LEG = `json_array(json_object('generation', 1, 'what', 'first', 'from', 0, 'to', ${LAST_SEQ},
  'where', NULL, 'fields', NULL, 'tag', NULL))`;

/** Whether the relay has not yet looked at the sink. */
export function isNew({ generation }: Pick<SinkRow, 'generation'>): boolean {
  return generation === 0;
}

/** The leg on which a sink is. */
export function legOf({ legs }: Pick<SinkRow, 'legs'>): SinkLeg {
  return legs.at(-1) ?? NONE;
}

/** Whether a leg delivers all that the store shall have. */
export function isFill({ what }: SinkLeg): boolean {
  return what === 'first' || what === 'newest' || what === 'replacement';
}

export function isSameView(a: ViewText, b: ViewText): boolean {
  return a.where === b.where && a.fields === b.fields;
}

/** Whether an operator has let the sink replace what another mirror has delivered. */
export function mayReplace(sink: Legged): boolean {
  return sink.cursor === 0 && legOf(sink).what === 'replacement';
}

/** The leg before a difference. */
export function legBefore({ legs }: Pick<SinkRow, 'legs'>): SinkLeg {
  const before = legs.at(-2);
  if (before === undefined) throw new Error('a difference has no leg that it starts from');
  return before;
}

/** Where the delivery of the last leg begins. Of the same view, products up to where the difference starts are the same. */
export function startOf(sink: Pick<SinkRow, 'legs'>): number {
  const leg = legOf(sink);
  if (isFill(leg)) return 0;
  return leg.what === 'changes' || legBefore(sink).tag === leg.tag ? leg.from : 0;
}

/** Begins legs, and writes what holds a sink. */
export function createLegWriter({ write, number }: Queries, reader: SinkReader) {
  const lastSeq = number<[]>(`SELECT ${LAST_SEQ}`);
  const begin = write(
    `UPDATE sinks SET generation = :generation, cursor = :cursor, legs = :legs, retry_at = NULL,
       fill_end = iif(:isFill, NULL, fill_end) WHERE id = :id`,
  );
  const setLegs = write<[legs: string, id: number]>('UPDATE sinks SET legs = ? WHERE id = ?');
  const letRun = write<[id: number]>(
    `UPDATE sinks SET held = NULL, state = 'running', error = NULL, error_at = NULL, view_failures = 0, view_failure = NULL
       WHERE id = ?`,
  );
  // Skipped ones, too: what the store gets of those products now is something else.
  const forgetParked = write('DELETE FROM parked WHERE sink_id = ?');
  const hold = write("UPDATE sinks SET state = 'held', held = ? WHERE id = ? AND state = 'running'");

  function beginLeg({ id, legs }: SinkRow, leg: SinkLeg): void {
    // A replay from a change has the view of the leg before it, so later legs need not know it.
    const kept = isFill(leg) ? [] : legs.filter(({ what }, at) => what !== 'changes' || at === 0);
    const all = [...kept, leg];
    const [generation, cursor] = [leg.generation, startOf({ legs: all })];
    begin({ id, generation, cursor, legs: JSON.stringify(all), isFill: isFill(leg) ? 1 : 0 });
  }

  function named(sink: SinkRow, view: ViewText): Pick<SinkLeg, 'where' | 'fields' | 'tag'> {
    const { where, fields, tag } = legOf(sink);
    if (isSameView(view, { where, fields })) return { where, fields, tag };
    return { where: view.where, fields: view.fields, tag: randomBytes(TAG_BYTES).toString('hex') };
  }

  /**
   * Begins a fill.
   * @param above the store has a mark of this generation
   */
  function fill(sink: SinkRow, what: SinkLeg['what'], above = 0, view: ViewText = legOf(sink)): void {
    beginLeg(sink, {
      generation: Math.max(sink.generation, above) + 1,
      what: mayReplace(sink) ? 'replacement' : what,
      from: 0,
      to: lastSeq(),
      ...named(sink, view),
    });
  }

  /** Begins a difference if the leg is finished, and the store has every event of it; else a fill. @param to at least */
  function beginView(sink: SinkRow, view: ViewText, to: number): void {
    const { id, generation, cursor, legs } = sink;
    const isFinished = legs.length > 0 && cursor > 0 && cursor >= legOf(sink).to;
    if (isNew(sink)) beginLeg(sink, { ...legOf(sink), ...named(sink, view) });
    else if (isFinished && reader.parked(id).every(({ state }) => state === 'delivered')) {
      beginLeg(sink, { generation: generation + 1, what: 'difference', from: cursor, to, ...named(sink, view) });
    } else fill(sink, 'newest', 0, view);
    forgetParked(id);
    letRun(id);
  }

  return {
    fill,
    /** Brings a store to a view. */
    changeView: (sink: SinkRow, view: ViewText) => beginView(sink, view, sink.cursor),
    /** Sends what differs between the products as of the cursor and as they are now. */
    sendNewest: (sink: SinkRow) => beginView(sink, legOf(sink), lastSeq()),
    /** Delivers every change after `from`. @param generation of a store that another sink of this mirror has fed */
    beginChanges: (sink: SinkRow, from: number, generation = sink.generation + 1): void => {
      const { where, fields, tag } = legOf(sink);
      beginLeg(sink, { generation, what: 'changes', from, to: 0, where, fields, tag });
    },
    /** Changes what the last leg is. */
    setLeg: ({ id, legs }: SinkRow, leg: Partial<SinkLeg>): void => {
      setLegs(JSON.stringify([...legs.slice(0, -1), { ...legOf({ legs }), ...leg }]), id);
    },
    /** Sends nothing until an operator decides. */
    hold: (id: number, held: HeldSink) => hold(JSON.stringify(held), id),
    release: write<[id: number]>(
      "UPDATE sinks SET state = CASE state WHEN 'held' THEN 'running' ELSE state END, held = NULL WHERE id = ?",
    ),
    noteViewFailures: write<[count: number, last: string | null, id: number]>(
      'UPDATE sinks SET view_failures = view_failures + ?, view_failure = ? WHERE id = ?',
    ),
  };
}
