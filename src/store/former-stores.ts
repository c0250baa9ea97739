import type { Queries } from './queries.ts';
import type { SinkReader, SinkRow } from './sinks.ts';

/** Ends the name of a store that lost its name to another one: no setting can have such a name. */
const FORMER = '-former';

/**
 * Events are parked for a store, not for a name. When a name comes to mean another store, what is parked for the former
 * one moves to a row of its own, which is not configured, and comes back with that store.
 */
export function createFormerStores({ value, write }: Queries, reader: SinkReader) {
  const idOf = value<[name: string], number>('SELECT id FROM sinks WHERE name = ?');
  const byIdentity = value<[{ name: string; identity: string }], number>(
    `SELECT id FROM sinks WHERE identity = :identity AND name <> :name AND configured = 0 ORDER BY acked_at DESC LIMIT 1`,
  );
  // Every change between the position and what the former store confirmed was parked. A store that has another row was
  // fed as another one, and may be at the same position.
  const byPosition = value<[Pick<SinkRow, 'id' | 'name' | 'identity' | 'generation' | 'cursor'>], number>(
    `SELECT id FROM sinks AS former
     WHERE name GLOB :name || '${FORMER}*' AND configured = 0 AND generation = :generation AND cursor >= :cursor
       AND NOT EXISTS (SELECT 1 FROM sinks WHERE identity = :identity AND id <> :id)
       AND NOT EXISTS (SELECT 1 FROM changes WHERE seq > :cursor AND seq <= former.cursor
         AND seq NOT IN (SELECT seq FROM parked WHERE sink_id = former.id))
     ORDER BY id DESC LIMIT 1`,
  );
  const hasParked = value<[{ id: number }], number>(
    `SELECT 1 WHERE EXISTS (SELECT 1 FROM parked WHERE sink_id = :id)
       OR EXISTS (SELECT 1 FROM sink_gaps WHERE sink_id = :id)`,
  );
  const copy = write(
    `INSERT INTO sinks (name, kind, address, identity, configured, state, generation, began_generation, began_cursor,
       opened, cursor, delivered, rate, acked_at)
     SELECT :former, kind, address, identity, 0, state, generation, began_generation, began_cursor,
       opened, cursor, delivered, rate, acked_at FROM sinks WHERE id = :id`,
  );
  const moveParked = write('UPDATE OR IGNORE parked SET sink_id = :to WHERE sink_id = :from');
  const moveGaps = write('UPDATE OR IGNORE sink_gaps SET sink_id = :to WHERE sink_id = :from');
  const drop = write(
    `DELETE FROM sinks WHERE id = ? AND name GLOB '*${FORMER}*'
       AND NOT EXISTS (SELECT 1 FROM parked WHERE sink_id = sinks.id)`,
  );
  const formerOf = value<[{ name: string; identity: string }], string>(
    `SELECT name FROM sinks WHERE name GLOB :name || '${FORMER}*' AND configured = 0 AND identity = :identity`,
  );

  function take(from: number | null, to: number | null): void {
    if (from === null) return;
    moveParked({ from, to });
    moveGaps({ from, to });
  }

  return {
    /** Keeps what is parked for the store of a sink. @returns under which name; null if nothing is */
    setAside: ({ id, name, identity }: SinkRow): string | null => {
      if (hasParked({ id }) === null) return null;
      const known = formerOf({ name, identity });
      let former = `${name}${FORMER}`;
      if (known !== null) drop(idOf(known) ?? 0);
      for (let number = 2; reader.get(former) !== undefined; number++) former = `${name}${FORMER}-${number}`;
      copy({ id, former });
      take(id, idOf(former));
      return former;
    },
    /** Gives a sink what was parked for its store under another name. */
    takeByIdentity: (name: string, identity: string): void => {
      const former = byIdentity({ name, identity });
      take(former, idOf(name));
      drop(former ?? 0);
    },
    /**
     * Gives a sink what was parked for the former store of its name, if the position of the opened store shows that it
     * is the same one under another address.
     */
    takeByPosition: (sink: SinkRow, { generation, cursor }: Pick<SinkRow, 'generation' | 'cursor'>): void => {
      const { id, name, identity } = sink;
      const former = cursor > 0 ? byPosition({ id, name, identity, generation, cursor }) : null;
      if (former === null) return;
      take(former, id);
      drop(former);
    },
  };
}
