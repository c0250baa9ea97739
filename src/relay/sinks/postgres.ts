import pg from 'pg';
import { z } from 'zod';
import { messageOf } from '../../errors.ts';
import { type Mark, type Opened, type Sink, SinkError, type SinkEvent, type SinkFactory } from '../sink.ts';
import { readOptions } from '../sink-options.ts';
import { isSameMark, markAtStart, markSchema } from '../stored-mark.ts';
import { ensureLayout, LAYOUT, namesOf } from './postgres-layout.ts';
import { eventParameters, markParameters, statementsOf } from './postgres-statements.ts';
import { sinkErrorsBy } from './sink-errors.ts';

/**
 * A table with one row per product, and one with its prices, written set-based. The mark is in `catchword_cursor`, written
 * in the same transaction: effectively once. A row is never overwritten by an older version.
 *
 * A fill delivers every product: to a new sink, after a replay, to a table that was emptied or that another mirror filled.
 * It does not empty the table. Each fill has a number, which its rows carry: rows of an earlier fill are overwritten
 * whatever their `seq`, and the ones that remain when the fill ends are removed.
 */

const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_$]{0,62}$/;

const OPTIONS = {
  table: z
    .string()
    .refine((name) => name.split('.').length <= 2 && name.split('.').every((part) => IDENTIFIER.test(part)), {
      error: 'a name such as products or shop.products',
    })
    .default('products'),
  removals: z.enum(['delete', 'tombstone'], 'tombstone or delete').default('tombstone'),
};

/** Options of catchword, which the driver must not get. */
const OWN = ['table', 'removals', 'refused'];
/** Options that are passed to the driver. */
const DRIVER = [
  ...['sslmode', 'sslrootcert', 'sslcert', 'sslkey', 'sslpassword', 'ssl', 'sslnegotiation', 'uselibpqcompat'],
  ...['application_name', 'fallback_application_name', 'options', 'client_encoding', 'connect_timeout', 'host', 'port'],
  ...['user', 'password', 'keepalives', 'lock_timeout', 'statement_timeout', 'idle_in_transaction_session_timeout'],
];
const CONNECT_TIMEOUT_MS = 10_000;
const QUERY_TIMEOUT_MS = 60_000;
/** Rows checked per transaction when a fill ends. */
const STEP = 20_000;

/** The class of the SQLSTATE tells whether the data, the settings or the server is the cause. */
function toSinkError(error: unknown): SinkError {
  const code = error instanceof pg.DatabaseError ? (error.code ?? '') : '';
  const message = `PostgreSQL: ${messageOf(error) || 'cannot be reached'}${code === '' ? '' : ` (${code})`}`;
  const failure = /^2[23]|^54/.test(code) ? 'refused' : /^(28|3D|3F|42)/.test(code) ? 'misconfigured' : 'unavailable';
  return new SinkError(failure, message, { cause: error });
}

const orSinkError = sinkErrorsBy(toSinkError);

/** The owner of rows in a table without a cursor row. */
const UNKNOWN_OWNER: Mark = { incarnation: '', generation: 1, cursor: 0, at: 0, late: 0 };

/** How long a check waits for a lock on the table. */
const PROBE_LOCK_MS = 3_000;
const PROBE_MARK: Mark = { ...UNKNOWN_OWNER, incarnation: 'catchword doctor' };
/** A new product and a removed one, to try both statements. */
const PROBE: readonly SinkEvent[] = [
  { seq: 1, at: 0, op: 'created', vbid: 'catchword-doctor-1', body: '{"vbid":"catchword-doctor-1"}', text: '' },
  { seq: 2, at: 0, op: 'removed', vbid: 'catchword-doctor-2', body: null, text: '' },
];

const cursorSchema = markSchema.extend({
  hasRows: z.boolean(),
  fillEnded: z.boolean(),
  layout: z.number(),
  /** Whether the table has rows now. */
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
  const driverUrl = new URL(url);
  for (const option of OWN) driverUrl.searchParams.delete(option);
  let client: pg.Client | undefined;
  /** The key of the cursor row: the full name of the table, however the settings spell it. */
  let key = table;
  /** The mark in the cursor row, as this process left it. */
  let written: Mark | null = null;
  let hasFillEnded = true;

  async function connect(): Promise<pg.Client> {
    const connecting = new pg.Client({
      connectionString: driverUrl.href,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: QUERY_TIMEOUT_MS,
      keepAlive: true,
      application_name: driverUrl.searchParams.get('application_name') ?? 'catchword',
    });
    // The next query reports it; without a listener it would end the process.
    connecting.on('error', () => {});
    await connecting.connect();
    // If a power failure loses the newest rows, it loses their cursor as well, and they are delivered again: batches need
    // not wait for the disk.
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

  /** @returns `schema.name` of the table; null if it does not exist */
  async function fullName(db: pg.Client): Promise<string | null> {
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

  /** Why the table does not have what it confirmed; null if a quick check finds nothing. */
  function lossOf(cursor: Cursor | null): string | null {
    if (cursor === null) return `the cursor row of ${table} is missing`;
    if (cursor.hasRows && !cursor.isFilled) return `table ${table} is empty but had rows`;
    return null;
  }

  /** Explains why the cursor is not what this process left. */
  async function conflict(db: pg.Client): Promise<SinkError> {
    const loss = lossOf(await readCursor(db));
    return new SinkError('unavailable', `PostgreSQL: ${loss ?? `another process moved the cursor of ${table}`}`);
  }

  /** Decides how far the table is. @param mark what the mirror believes */
  async function openTable(db: pg.Client, mark: Mark): Promise<Opened> {
    const cursor = await readCursor(db);
    const start = markAtStart(mark);
    const again = (reason: string): Opened => (mark.cursor > 0 ? { ...start, refill: reason } : start);
    written = cursor === null ? null : markOf(cursor);
    hasFillEnded = cursor?.fillEnded ?? true;
    const loss = lossOf(cursor);
    // An empty table may be filled by this mirror, even if another one filled it before.
    if (!(cursor?.isFilled ?? (await hasRows(db))) && (loss !== null || cursor?.incarnation !== mark.incarnation)) {
      await beginFill(db, start);
      return again(loss ?? `table ${table} is empty`);
    }
    if (cursor === null) {
      // This mirror never wrote the rows: the operator must decide.
      return mark.cursor === 0 ? UNKNOWN_OWNER : again(`the cursor row of ${table} is missing`);
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

  /** Writes the last state of each product in the batch. */
  async function write(db: pg.Client, events: readonly SinkEvent[], mark: Mark): Promise<void> {
    const last = new Map(events.map((event) => [event.vbid, event]));
    const values = [...markParameters(key, mark, written), ...eventParameters([...last.values()])];
    const { rows } = await db.query<{ moved: number }>({ name: 'deliver', text: sql.deliver, values });
    if (rows[0]?.moved !== 1) throw await conflict(db);
    written = mark;
  }

  /** Opens and delivers for products of its own, in a transaction that it rolls back. */
  async function tryToWrite(db: pg.Client, name: string): Promise<void> {
    await db.query('BEGIN');
    try {
      await db.query(`SET LOCAL lock_timeout = ${PROBE_LOCK_MS}`);
      await ensureLayout(db, table, names);
      // A cursor row of its own: a relay may have locked the real one, which must not change.
      key = `${name} (catchword doctor)`;
      await hasRows(db);
      await readCursor(db);
      await beginFill(db, PROBE_MARK);
      await write(db, PROBE, { ...PROBE_MARK, cursor: PROBE.length });
    } finally {
      key = table;
      written = null;
      hasFillEnded = true;
      // Report the first error, not this one.
      await db.query('ROLLBACK').catch(() => {});
    }
  }

  return {
    batch: { events: 2_000, chars: 8_000_000 },
    open: (mark) =>
      orSinkError(async () => {
        client = await connect();
        await ensureLayout(client, table, names);
        key = (await fullName(client)) ?? table;
        return await openTable(client, mark);
      }),
    fillBegins: (mark) => orSinkError(() => beginFill(connected(), mark)),
    fillEnds: (kept, mark) =>
      orSinkError(async () => {
        if (hasFillEnded && isSameMark(written, mark)) return;
        try {
          await endFill(connected(), kept, mark);
        } catch (error) {
          const { failure, message } = error instanceof SinkError ? error : toSinkError(error);
          if (failure !== 'refused') throw error;
          const what = `rows of ${table} that the mirror does not have cannot be removed`;
          throw new SinkError('misconfigured', `${what}: ${message}. Use removals=tombstone`, { cause: error });
        }
      }),
    deliver: (events, mark) => orSinkError(() => write(connected(), events, mark)),
    recheck: () =>
      orSinkError(async () => {
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
      orSinkError(async () => {
        const probe = await connect();
        try {
          const found = await fullName(probe);
          await tryToWrite(probe, found ?? table);
          const tried = 'tried in a transaction that was rolled back';
          return found !== null
            ? `rows of table ${table} can be written and removed (${tried})`
            : `table ${table} can be created and written (${tried})`;
        } finally {
          await probe.end();
        }
      }),
  };
};
