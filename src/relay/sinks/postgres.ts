import pg from 'pg';
import { z } from 'zod';
import { columnsOf } from '../../catalog/product.ts';
import { messageOf } from '../../errors.ts';
import { markSchema } from '../mark.ts';
import { readOptions } from '../options.ts';
import { type Mark, type Sink, SinkError, type SinkEvent, type SinkFactory } from '../sink.ts';

/**
 * A table with one row a product. Events of a batch are written set-based, and how far the table is stands beside it in
 * `catchword_cursor`, written in the same transaction: effectively once.
 *
 * A row is never overwritten by an older version, so a replay mends what is missing and leaves the rest alone.
 */

const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_$]{0,62}$/;

const OPTIONS = {
  table: z
    .string()
    .refine((name) => name.split('.').length <= 2 && name.split('.').every((part) => IDENTIFIER.test(part)), {
      error: 'a name such as products or shop.products is needed',
    })
    .default('products'),
  removals: z.enum(['delete', 'tombstone']).default('delete'),
};

/** Options of ours. */
const OWN = ['table', 'removals', 'refused'];
/** Options of the driver. */
const DRIVER = [
  ...['sslmode', 'sslrootcert', 'sslcert', 'sslkey', 'sslpassword', 'ssl', 'sslnegotiation', 'uselibpqcompat'],
  ...['application_name', 'fallback_application_name', 'options', 'client_encoding', 'connect_timeout', 'host', 'port'],
  ...['user', 'password', 'keepalives', 'lock_timeout', 'statement_timeout', 'idle_in_transaction_session_timeout'],
];
const CONNECT_TIMEOUT_MS = 10_000;
const QUERY_TIMEOUT_MS = 60_000;

function quoted(name: string): string {
  return name
    .split('.')
    .map((part) => pg.escapeIdentifier(part))
    .join('.');
}

/** By class of SQLSTATE: what is wrong with the data, with the settings, or with the moment. */
function failure(error: unknown): SinkError {
  if (error instanceof SinkError) return error;
  const code = error instanceof pg.DatabaseError ? (error.code ?? '') : '';
  const message = `PostgreSQL: ${messageOf(error) || 'cannot be reached'}${code === '' ? '' : ` (${code})`}`;
  const kind = /^2[23]|^54/.test(code) ? 'refused' : /^(28|3D|3F|42)/.test(code) ? 'misconfigured' : 'unavailable';
  return new SinkError(kind, message, { cause: error });
}

/** Whose rows they are that no cursor stands beside. */
const NOBODY: Mark = { incarnation: '', generation: 1, cursor: 0, at: 0, late: 0 };

interface Statements {
  readonly create: readonly string[];
  readonly readMark: string;
  readonly deliver: string;
  readonly clear: readonly string[];
}

/** How many parameters the mark takes: before, and after. */
const MARK_PARAMETERS = 9;

/**
 * A batch is one statement, and so one transaction and one answer to wait for: it moves the cursor, and where that was
 * not where it should be (no row of `moved`), it does nothing else.
 */
function statements(table: string, removals: 'delete' | 'tombstone'): Statements {
  const name = quoted(table);
  const [schema] = table.includes('.') ? table.split('.') : [];
  const cursor = quoted(schema === undefined ? 'catchword_cursor' : `${schema}.catchword_cursor`);
  const columns = ['title', 'kind', 'format', 'publisher', 'print_isbn', 'e_isbn', 'body', 'seq', 'changed_at'];
  const next = (offset: number): string => `$${MARK_PARAMETERS + offset}`;
  const gone = `unnest(${next(11)}::text[], ${next(12)}::bigint[], ${next(13)}::double precision[]) AS gone (vbid, seq, at)
    WHERE EXISTS (SELECT FROM moved) AND ${name}.vbid = gone.vbid AND ${name}.seq <= gone.seq`;
  const remove =
    removals === 'delete'
      ? `DELETE FROM ${name} USING ${gone}`
      : `UPDATE ${name} SET removed_at = to_timestamp(gone.at), changed_at = to_timestamp(gone.at), seq = gone.seq
           FROM ${gone}`;
  return {
    create: [
      `CREATE TABLE IF NOT EXISTS ${name} (vbid text PRIMARY KEY, title text, kind text, format text, publisher text,
         print_isbn text, e_isbn text, body jsonb NOT NULL, seq bigint NOT NULL, changed_at timestamptz NOT NULL,
         removed_at timestamptz)`,
      `CREATE TABLE IF NOT EXISTS ${cursor} (table_name text PRIMARY KEY, incarnation text NOT NULL,
         generation bigint NOT NULL, cursor bigint NOT NULL, at bigint NOT NULL, late bigint NOT NULL)`,
    ],
    readMark: `SELECT incarnation, generation, cursor, at, late FROM ${cursor} WHERE table_name = $1`,
    deliver: `WITH moved AS (
        INSERT INTO ${cursor} AS c (table_name, incarnation, generation, cursor, at, late) VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (table_name) DO UPDATE SET generation = excluded.generation, cursor = excluded.cursor,
          at = excluded.at, late = excluded.late
        WHERE c.incarnation = excluded.incarnation AND c.generation = $7 AND c.cursor = $8 AND c.late = $9
        RETURNING 1
      ), removed AS (${remove}), written AS (
        INSERT INTO ${name} (vbid, ${columns.join(', ')})
        SELECT vbid, title, kind, format, publisher, print_isbn, e_isbn, body, seq, to_timestamp(at)
        FROM ROWS FROM (jsonb_array_elements(${next(1)}::jsonb), unnest(${next(2)}::text[]), unnest(${next(3)}::text[]),
          unnest(${next(4)}::text[]), unnest(${next(5)}::text[]), unnest(${next(6)}::text[]), unnest(${next(7)}::text[]),
          unnest(${next(8)}::text[]), unnest(${next(9)}::bigint[]), unnest(${next(10)}::double precision[]))
          AS new (body, vbid, title, kind, format, publisher, print_isbn, e_isbn, seq, at)
        WHERE EXISTS (SELECT FROM moved)
        ON CONFLICT (vbid) DO UPDATE SET ${columns.map((column) => `${column} = excluded.${column}`).join(', ')},
          removed_at = NULL WHERE ${name}.seq <= excluded.seq
      ) SELECT count(*)::int AS moved FROM moved`,
    clear: [`DELETE FROM ${name}`, `DELETE FROM ${cursor} WHERE table_name = $1`],
  };
}

/**
 * Bodies as one array of JSON, which PostgreSQL parses once; everything else column by column. As an array of texts,
 * bodies are escaped here, and there parsed twice: measured half as fast.
 */
function parametersOf(events: readonly SinkEvent[]): unknown[] {
  const columns: unknown[][] = Array.from({ length: 9 }, () => []);
  for (const { vbid, body, seq, at } of events) {
    const product = columnsOf(JSON.parse(body ?? '{}') as Record<string, unknown>);
    const { title, kind, format, publisher, printIsbn, eIsbn } = product;
    const values = [vbid, title, kind, format, publisher, printIsbn, eIsbn, seq, at / 1000];
    for (let index = 0; index < values.length; index++) columns[index]?.push(values[index]);
  }
  return [`[${events.map(({ body }) => body).join(',')}]`, ...columns];
}

export const createPostgresSink: SinkFactory = ({ url }): Sink => {
  const { table, removals } = readOptions(url, OPTIONS, DRIVER);
  const sql = statements(table, removals);
  const address = new URL(url);
  for (const option of OWN) address.searchParams.delete(option);
  let client: pg.Client | undefined;
  /** The table's name in full, by which its cursor is known however the settings spell it. */
  let key = table;
  /** What the table's cursor is, as this process left it. */
  let written: Mark | null = null;
  /** The rows are of another history: another mirror, or a later state of this one, which was restored from a backup. */
  let isForeign = false;

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

  async function readMark(db: pg.Client, text: string): Promise<Mark | null> {
    const { rows } = await db.query({ text, values: [key] });
    return rows.length === 0 ? null : markSchema.parse(rows[0]);
  }

  /** @returns schema and name of the table; null where there is none */
  async function find(db: pg.Client): Promise<string | null> {
    const { rows } = await db.query<{ found: string }>({
      text: `SELECT nspname || '.' || relname AS found FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace
             WHERE pg_class.oid = to_regclass($1)`,
      values: [quoted(table)],
    });
    return rows[0]?.found ?? null;
  }

  async function hasRows(db: pg.Client): Promise<boolean> {
    const { rows } = await db.query<{ found: boolean }>(`SELECT EXISTS (SELECT FROM ${quoted(table)}) AS found`);
    return rows[0]?.found ?? false;
  }

  /** Rows of another history cannot be told by their numbers; the operator has said that they may go. */
  async function clear(db: pg.Client): Promise<void> {
    const [rows = '', cursor = ''] = sql.clear;
    await db.query('BEGIN');
    await db.query(rows);
    await db.query({ text: cursor, values: [key] });
    await db.query('COMMIT');
    written = null;
    isForeign = false;
  }

  /** Of a product that changed twice in one batch only what it is in the end is written. */
  async function write(db: pg.Client, events: readonly SinkEvent[], mark: Mark): Promise<void> {
    const last = new Map(events.map((event) => [event.vbid, event]));
    const living = [...last.values()].filter(({ body }) => body !== null);
    const gone = [...last.values()].filter(({ body }) => body === null);
    const { incarnation, generation, cursor, at, late } = mark;
    const values = [
      ...[key, incarnation, generation, cursor, at, late],
      ...[written?.generation ?? 0, written?.cursor ?? 0, written?.late ?? 0],
      ...parametersOf(living),
      ...[gone.map(({ vbid }) => vbid), gone.map(({ seq }) => seq), gone.map(({ at }) => at / 1000)],
    ];
    const { rows } = await db.query<{ moved: number }>({ name: 'deliver', text: sql.deliver, values });
    if (rows[0]?.moved !== 1) {
      throw new SinkError('unavailable', `PostgreSQL: somebody else moved the cursor of ${table}`);
    }
    written = mark;
  }

  return {
    batch: { events: 2_000, chars: 8_000_000 },
    open: async (mark, newest) => {
      try {
        client = await connect();
        for (const text of sql.create) await client.query(text);
        key = (await find(client)) ?? table;
        written = await readMark(client, sql.readMark);
        isForeign = written !== null && (written.incarnation !== mark.incarnation || written.cursor > newest);
        // What was confirmed is not there any more, if it ever was.
        if (!(await hasRows(client))) return { ...mark, cursor: 0, at: 0, late: 0 };
        if (written !== null) return written;
        isForeign = true;
        return NOBODY;
      } catch (error) {
        throw failure(error);
      }
    },
    deliver: async (events, mark) => {
      if (client === undefined) throw new SinkError('unavailable', 'PostgreSQL: not connected');
      try {
        if (isForeign) await clear(client);
        await write(client, events, mark);
      } catch (error) {
        throw failure(error);
      }
    },
    close: async () => {
      const closing = client;
      client = undefined;
      await closing?.end();
    },
    check: async () => {
      const probe = await connect().catch((error: unknown) => {
        throw failure(error);
      });
      try {
        const found = await find(probe);
        return found !== null ? `table ${table} is there` : `can be reached; table ${table} will be made`;
      } catch (error) {
        throw failure(error);
      } finally {
        await probe.end();
      }
    },
  };
};
