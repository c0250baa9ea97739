import pg from 'pg';
import { z } from 'zod';
import { messageOf } from '../../errors.ts';
import { isSameMark, markSchema } from '../mark.ts';
import { type Mark, type Opened, type Sink, SinkError, type SinkEvent, type SinkFactory } from '../sink.ts';
import { readOptions } from '../sink-options.ts';
import { ensureLayout, LAYOUT, namesOf } from './postgres-layout.ts';
import { eventParameters, markParameters, statementsOf } from './postgres-statements.ts';

/**
 * A table with one row a product, and one with its prices. Events of a batch are written set-based. How far the table is
 * stands in `catchword_cursor`, written in the same transaction: effectively once. A row is never overwritten by an older
 * version.
 *
 * A fill begins when the table has to be read again from the beginning: a new sink, a replay, a table that was emptied or
 * that another mirror filled. It empties nothing. Each fill has a number, which its rows carry: rows of an earlier fill are
 * overwritten whatever their `seq`, and those that are left when the fill ends are removed.
 */

const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_$]{0,62}$/;

const OPTIONS = {
  table: z
    .string()
    .refine((name) => name.split('.').length <= 2 && name.split('.').every((part) => IDENTIFIER.test(part)), {
      error: 'a name such as products or shop.products is needed',
    })
    .default('products'),
  removals: z.enum(['delete', 'tombstone']).default('tombstone'),
};

/** Options of ours. */
const OWN = ['table', 'removals', 'refused'];
/** Options of the driver. */
const DRIVER = [
  'sslmode',
  'sslrootcert',
  'sslcert',
  'sslkey',
  'sslpassword',
  'ssl',
  'sslnegotiation',
  'uselibpqcompat',
  'application_name',
  'fallback_application_name',
  'options',
  'client_encoding',
  'connect_timeout',
  'host',
  'port',
  'user',
  'password',
  'keepalives',
  'lock_timeout',
  'statement_timeout',
  'idle_in_transaction_session_timeout',
];
const CONNECT_TIMEOUT_MS = 10_000;
const QUERY_TIMEOUT_MS = 60_000;
/** Rows that are looked at in one transaction when a fill ends. */
const STEP = 20_000;

/** By class of SQLSTATE: what is wrong with the data, with the settings, or with the moment. */
function failure(error: unknown): SinkError {
  if (error instanceof SinkError) return error;
  const code = error instanceof pg.DatabaseError ? (error.code ?? '') : '';
  const message = `PostgreSQL: ${messageOf(error) || 'cannot be reached'}${code === '' ? '' : ` (${code})`}`;
  const kind = /^2[23]|^54/.test(code) ? 'refused' : /^(28|3D|3F|42)/.test(code) ? 'misconfigured' : 'unavailable';
  return new SinkError(kind, message, { cause: error });
}

async function orFailure<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw failure(error);
  }
}

/** The owner of rows in a table without a cursor row. */
const UNKNOWN_OWNER: Mark = { incarnation: '', generation: 1, cursor: 0, at: 0, late: 0 };

/** How long a probe waits for another process's lock on the table, in milliseconds. */
const PROBE_LOCK_MS = 3_000;
const PROBE_MARK: Mark = { ...UNKNOWN_OWNER, incarnation: 'catchword doctor' };
/** A product that comes, and one that goes: both statements are tried. */
const PROBE: readonly SinkEvent[] = [
  { seq: 1, at: 0, op: 'created', vbid: 'catchword-doctor-1', body: '{"vbid":"catchword-doctor-1"}', text: '' },
  { seq: 2, at: 0, op: 'removed', vbid: 'catchword-doctor-2', body: null, text: '' },
];

const cursorSchema = markSchema.extend({
  hasRows: z.boolean(),
  fillEnded: z.boolean(),
  layout: z.number(),
  /** Of the table, at this moment. */
  isFilled: z.boolean(),
});
type Cursor = z.output<typeof cursorSchema>;

function markOf({ incarnation, generation, cursor, at, late }: Cursor): Mark {
  return { incarnation, generation, cursor, at, late };
}

export const createPostgresSink: SinkFactory = ({ url }): Sink => {
  const { table, removals } = readOptions(url, OPTIONS, DRIVER);
  const names = namesOf(table);
  const sql = statementsOf(names, removals);
  const address = new URL(url);
  for (const option of OWN) address.searchParams.delete(option);
  let client: pg.Client | undefined;
  /** The table's name in full, by which its cursor is known however the settings spell it. */
  let key = table;
  /** What the table's cursor is, as this process left it. */
  let written: Mark | null = null;
  let hasFillEnded = true;

  async function connect(): Promise<pg.Client> {
    const connecting = new pg.Client({
      connectionString: address.href,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: QUERY_TIMEOUT_MS,
      keepAlive: true,
      application_name: address.searchParams.get('application_name') ?? 'catchword',
    });
    // Reported by the next query; without a listener it would end the process.
    connecting.on('error', () => {});
    await connecting.connect();
    // What PostgreSQL loses when its machine loses power, rows and cursor alike, is delivered again: no need to wait for
    // its disk at every batch.
    await connecting.query('SET synchronous_commit = off');
    return connecting;
  }

  function connected(): pg.Client {
    if (client === undefined) throw new SinkError('unavailable', 'PostgreSQL: not connected');
    return client;
  }

  async function readCursor(db: pg.Client): Promise<Cursor | null> {
    const { rows } = await db.query({ text: sql.readCursor, values: [key] });
    return rows.length === 0 ? null : cursorSchema.parse(rows[0]);
  }

  /** @returns schema and name of the table; null where there is no such table */
  async function find(db: pg.Client): Promise<string | null> {
    const { rows } = await db.query<{ found: string }>({
      text: `SELECT nspname || '.' || relname AS found FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace
             WHERE pg_class.oid = to_regclass($1)`,
      values: [names.table],
    });
    return rows[0]?.found ?? null;
  }

  async function hasRows(db: pg.Client): Promise<boolean> {
    const { rows } = await db.query<{ found: boolean }>(`SELECT EXISTS (SELECT FROM ${names.table}) AS found`);
    return rows[0]?.found ?? false;
  }

  /** Why the table does not hold what it confirmed; null where it does, as far as a cheap look tells. */
  function lossOf(cursor: Cursor | null): string | null {
    if (cursor === null) return `the cursor of ${table} is gone`;
    if (cursor.hasRows && !cursor.isFilled) return `table ${table} is empty, and had rows`;
    return null;
  }

  /** What moved the cursor away from what this process left there. */
  async function conflict(db: pg.Client): Promise<SinkError> {
    const loss = lossOf(await readCursor(db));
    return new SinkError('unavailable', `PostgreSQL: ${loss ?? `another process moved the cursor of ${table}`}`);
  }

  /** How far the table is, of which the mirror believes that it is at `mark`. */
  async function openTable(db: pg.Client, mark: Mark): Promise<Opened> {
    const cursor = await readCursor(db);
    const nothing: Mark = { ...mark, cursor: 0, at: 0, late: 0 };
    const again = (reason: string): Opened => (mark.cursor > 0 ? { ...nothing, refill: reason } : nothing);
    written = cursor === null ? null : markOf(cursor);
    hasFillEnded = cursor?.fillEnded ?? true;
    const loss = lossOf(cursor);
    // Whoever filled it before: an empty table begins with this mirror.
    if (!(cursor?.isFilled ?? (await hasRows(db))) && (loss !== null || cursor?.incarnation !== mark.incarnation)) {
      await beginFill(db, nothing);
      return again(loss ?? `table ${table} is empty`);
    }
    if (cursor === null) {
      // Rows of an unknown owner, which this mirror has never written: that is for the operator to decide.
      return mark.cursor === 0 ? UNKNOWN_OWNER : again(`the cursor of ${table} is gone`);
    }
    if (cursor.incarnation !== mark.incarnation) return markOf(cursor);
    if (cursor.layout < LAYOUT) return again(`table ${table} has new columns`);
    return cursor.cursor === 0 ? again(`nothing was delivered to ${table} yet`) : markOf(cursor);
  }

  async function beginFill(db: pg.Client, mark: Mark): Promise<void> {
    const values = markParameters(key, mark, written);
    const { rows } = await db.query<{ fillEnded: boolean }>(
      written === null
        ? { text: sql.beginFirstFill, values: values.slice(0, 6) }
        : { text: sql.beginFill, values: [...values, written.incarnation] },
    );
    const [begun] = rows;
    if (begun === undefined) throw await conflict(db);
    written = mark;
    hasFillEnded = begun.fillEnded;
  }

  async function endFill(db: pg.Client, kept: readonly string[], mark: Mark): Promise<void> {
    for (let after = ''; !hasFillEnded; ) {
      const { incarnation, generation, cursor, late } = written ?? mark;
      const values = [key, incarnation, generation, cursor, late, after, STEP, kept];
      const { rows } = await db.query<{ last: string | null }>({ text: sql.endFillStep, values });
      const last = rows[0]?.last ?? null;
      if (last === null) break;
      after = last;
    }
    const { rows } = await db.query<{ moved: number }>({
      text: sql.endFill,
      values: markParameters(key, mark, written),
    });
    if (rows[0]?.moved !== 1) throw await conflict(db);
    written = mark;
    hasFillEnded = true;
  }

  /** Of a product that changed twice in one batch only what it is in the end is written. */
  async function write(db: pg.Client, events: readonly SinkEvent[], mark: Mark): Promise<void> {
    const last = new Map(events.map((event) => [event.vbid, event]));
    const values = [...markParameters(key, mark, written), ...eventParameters([...last.values()])];
    const { rows } = await db.query<{ moved: number }>({ name: 'deliver', text: sql.deliver, values });
    if (rows[0]?.moved !== 1) throw await conflict(db);
    written = mark;
  }

  /** Does what opening and delivering do, for products of its own, and takes it back. */
  async function tryToWrite(db: pg.Client, name: string): Promise<void> {
    await db.query('BEGIN');
    try {
      await db.query(`SET LOCAL lock_timeout = ${PROBE_LOCK_MS}`);
      await ensureLayout(db, table, names);
      // A cursor of its own: the real one may be locked by a relay, and must stay where the relay left it.
      key = `${name} (catchword doctor)`;
      await hasRows(db);
      await readCursor(db);
      await beginFill(db, PROBE_MARK);
      await write(db, PROBE, { ...PROBE_MARK, cursor: PROBE.length });
    } finally {
      key = table;
      written = null;
      hasFillEnded = true;
      // The error that came first is the one to report.
      await db.query('ROLLBACK').catch(() => {});
    }
  }

  return {
    batch: { events: 2_000, chars: 8_000_000 },
    open: (mark) =>
      orFailure(async () => {
        client = await connect();
        await ensureLayout(client, table, names);
        key = (await find(client)) ?? table;
        return await openTable(client, mark);
      }),
    fillBegins: (mark) => orFailure(() => beginFill(connected(), mark)),
    fillEnds: (kept, mark) =>
      orFailure(async () => {
        if (hasFillEnded && isSameMark(written, mark)) return;
        try {
          await endFill(connected(), kept, mark);
        } catch (error) {
          const { failure: kind, message } = failure(error);
          if (kind !== 'refused') throw error;
          const what = `rows that the mirror does not have cannot be removed from ${table}`;
          throw new SinkError('misconfigured', `${what}: ${message}. Use removals=tombstone`, { cause: error });
        }
      }),
    deliver: (events, mark) => orFailure(() => write(connected(), events, mark)),
    recheck: () =>
      orFailure(async () => {
        const db = connected();
        const cursor = await readCursor(db);
        const isOurs = cursor !== null && isSameMark(markOf(cursor), written);
        if (!isOurs || lossOf(cursor) !== null) throw await conflict(db);
      }),
    close: async () => {
      const closing = client;
      client = undefined;
      await closing?.end();
    },
    check: () =>
      orFailure(async () => {
        const probe = await connect();
        try {
          const found = await find(probe);
          await tryToWrite(probe, found ?? table);
          const tried = 'tried in a transaction that was rolled back';
          return found !== null
            ? `rows of table ${table} can be written and removed (${tried})`
            : `table ${table} can be made and written (${tried})`;
        } finally {
          await probe.end();
        }
      }),
  };
};
