import { CatchwordError } from '@catchword/base/errors';
import { postgresAvailable, startPostgres } from '@catchword/testing/postgres';
import type { ServerProcess } from '@catchword/testing/server';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  openHarness,
  SINK_NAME,
  smallBatches,
  until,
  type Version,
  withAck,
  wrapSink,
} from '../../src/contract/harness.ts';
import { changeSink } from '../../src/operate/decisions/sink-actions.ts';
import type { SinkConfig } from '../../src/relay/sink-config.ts';
import { holdNumber } from '../../src/report/sink-report.ts';
import { legOf } from '../../src/store/rows/sink-legs.ts';
import { compileView, type View } from '../../src/view/view.ts';
import { configAt } from '../relay/feeding.ts';
import { COLUMN_TYPES, COLUMNS, filterOf, IDENTITY, LISTED, productOf, type Row, rowOf } from './filters.ts';
import { memoryReceiver, QUICK, randomOf } from './memory-receiver.ts';
import { markSql, publishedBy } from './publication.ts';

/** `HISTORIES=10000 npx vitest run test/view/postgres-oracle.test.ts` takes about half an hour. `FIRST` is the first seed. */
const HISTORIES = Number(process.env.HISTORIES ?? (process.env.CI === undefined ? 40 : 400));
const FIRST = Number(process.env.FIRST ?? 1);
/** One of so many histories goes into a table, the others into a receiver in memory. */
const TABLE_SHARE = 20;
/** Histories that are followed at the same time, because most of the time they wait. */
const AT_ONCE = 16;
const STEPS = 4;
const NAMES = { where: 'WHERE', fields: 'FIELDS' };

/** One change, with its statement for the source table. */
interface Change extends Version {
  readonly seq: number;
  readonly sql: string;
}

/** Some changes, or another filter. */
interface Step {
  readonly changes: readonly Change[];
  readonly filter: number | null;
  /** Whether the relay ends between its first delivery and the acknowledgement. */
  readonly isKilled: boolean;
}

/** What happens in one history, and its filters. */
function planOf(seed: number) {
  const below = randomOf(seed);
  const isListed = below(3) === 0;
  const filters = Array.from({ length: 2 }, () => filterOf(below, isListed));
  const source = isListed ? 'listed' : 'products';
  const living = new Set<string>();
  let seq = 0;
  function change(): Change {
    const vbid = `P${below(5)}`;
    seq++;
    const of = `WHERE vbid = '${vbid}'`;
    if (living.has(vbid) && below(5) === 0) {
      living.delete(vbid);
      return { vbid, body: null, seq, sql: `DELETE FROM ${source} ${of}` };
    }
    const { body, values } = productOf(below, vbid, isListed);
    const set = COLUMNS.map((column, at) => `${column} = ${values[at]}`);
    const sql = living.has(vbid)
      ? `UPDATE ${source} SET ${set.join(', ')} ${of}`
      : `INSERT INTO ${source} VALUES (${values.join(', ')})`;
    living.add(vbid);
    return { vbid, body, seq, sql };
  }
  const steps = Array.from({ length: STEPS }, (_, at): Step => {
    const isView = at > 0 && below(4) === 0;
    return {
      changes: isView ? [] : Array.from({ length: 1 + below(5) }, change),
      filter: isView ? below(filters.length) : null,
      isKilled: below(4) === 0,
    };
  });
  return { below, isListed, filters, source, steps };
}

type Plan = ReturnType<typeof planOf>;
/** For each filter, what a subscriber has after each change. */
type Published = readonly ReadonlyMap<number, Row[]>[];

/** Makes the changes in the source table. */
async function askPostgres(client: pg.Client, { filters, steps, source, isListed }: Plan): Promise<Published> {
  const columns = isListed ? `(${LISTED.join(', ')})` : '';
  const publications = filters.map(
    ({ postgres }, at) => `DROP PUBLICATION IF EXISTS p${at};
      CREATE PUBLICATION p${at} FOR TABLE ${source} ${columns} WHERE (${postgres}) WITH (publish = 'insert, update, delete')`,
  );
  await client.query([`TRUNCATE ${source}`, ...publications].join(';'));
  await client.query("SELECT pg_create_logical_replication_slot('oracle', 'pgoutput', true)");
  const changes = steps.flatMap((step) => step.changes);
  await client.query(changes.flatMap(({ sql, seq }) => [sql, markSql(seq)]).join(';'));
  const published: Map<number, Row[]>[] = [];
  for (const at of filters.keys()) published.push(await publishedBy(client, 'oracle', `p${at}`));
  await client.query("SELECT pg_drop_replication_slot('oracle')");
  return published;
}

/** The store of a history. */
interface Shop {
  readonly config: (view: View) => SinkConfig;
  /** What it had after each delivery since the last call, and its cursor then; the last one is what it has now. */
  readonly contents: () => Promise<readonly { readonly cursor: number; readonly bodies: readonly string[] }[]>;
}

function memoryShop(below: (below: number) => number): Shop {
  const { config, all } = memoryReceiver(below(2) === 0, 1 + below(3));
  let seen = 0;
  return {
    config,
    contents: async () => {
      const fresh = all().slice(Math.max(0, seen - 1));
      seen = all().length;
      return fresh.map(({ products, mark }) => ({ cursor: mark?.cursor ?? 0, bodies: [...products.values()] }));
    },
  };
}

function tableShop(client: pg.Client, port: number, table: string, below: (below: number) => number): Shop {
  const removals = below(2) === 0 ? '' : '&removals=delete';
  const url = `postgres://postgres@127.0.0.1:${port}/postgres?table=${table}${removals}`;
  const batches = smallBatches(1 + below(3));
  return {
    config: (view) => wrapSink({ ...configAt(url), view }, batches),
    contents: async () => {
      const text = `SELECT body::text AS body FROM ${table} WHERE removed_at IS NULL`;
      const { rows } = await client.query<{ body: string }>(text);
      return [{ cursor: Number.MAX_SAFE_INTEGER, bodies: rows.map(({ body }) => body) }];
    },
  };
}

async function follow(seed: number, { filters, steps, isListed }: Plan, published: Published, shop: Shop) {
  const columns = isListed ? LISTED : COLUMNS;
  const chosen = isListed
    ? ['title, language, edition', `json_object('title', title, 'language', language, 'edition', body->'edition')`]
    : [null];
  const views = filters.map(({ ours }, at) =>
    compileView({ where: ours, fields: chosen[at % chosen.length] ?? null }, NAMES),
  );
  const mirror = openHarness();
  const { store } = mirror;
  let at = 0;
  /** Up to there, what the store had is compared, or is not comparable. */
  let from = 0;
  const log: string[] = [];

  const isSettled = (): boolean => {
    const row = store.sinks.get(SINK_NAME);
    // A filter may read a member that none of the few products has, which looks like a typing error.
    if (row?.held?.why === 'view')
      store.request((writer) => changeSink(writer, 'release', SINK_NAME, holdNumber(row), Date.now()));
    if (row?.state !== 'running' || row.cursor !== store.changes.lastSeq()) return false;
    return row.generation > 0 && legOf(row).where === (views[at]?.where ?? null);
  };
  async function compare(): Promise<void> {
    await until(`the sink is settled (seed ${seed})`, isSettled);
    const last = store.changes.lastSeq();
    const contents = await shop.contents();
    for (const [index, { cursor, bodies }] of contents.entries()) {
      // The last one is what the store has now, however far it was noted.
      const isNow = index === contents.length - 1;
      if (!isNow && cursor <= from) continue;
      const seq = isNow ? last : cursor;
      const rows = bodies
        .map((body) => rowOf(body, columns))
        .sort((a, b) => (String(a.vbid) < String(b.vbid) ? -1 : 1));
      expect(rows, `seed ${seed}, change ${seq}: ${filters[at]?.postgres}; ${log.join('; ')}`).toEqual(
        published[at]?.get(seq) ?? [],
      );
    }
    from = last;
  }
  const config = (): SinkConfig => shop.config(views[at] as View);
  /** Starts a relay that ends after its first delivery, before the ack is written. */
  async function kill(): Promise<void> {
    let hasEnded = false;
    const ack = (): never => {
      hasEnded = true;
      throw new CatchwordError('LEASE_LOST', 'the test ends the relay here');
    };
    mirror.start(config(), { clock: QUICK, store: withAck(store, ack) });
    await until(`the relay ends (seed ${seed})`, () => hasEnded || isSettled());
    await mirror.stop();
  }
  try {
    // A sink with a view waits for the first products.
    mirror.start(config(), { clock: QUICK });
    for (const { changes, filter, isKilled } of steps) {
      log.push(`${filter === null ? 'changes' : `filter ${filter}`}${isKilled ? ', killed' : ''}`);
      if (filter !== null || isKilled) await mirror.stop();
      at = filter ?? at;
      if (filter !== null) from = store.changes.lastSeq();
      mirror.change(changes);
      if (isKilled) await kill();
      if (filter !== null || isKilled) mirror.start(config(), { clock: QUICK });
      await compare();
    }
  } finally {
    await mirror.close();
  }
}

describe.skipIf(!postgresAvailable)('a store with a filter', { tags: ['stores'] }, () => {
  let server: ServerProcess;
  let client: pg.Client;
  beforeAll(async () => {
    server = await startPostgres({ settings: ['fsync=off', 'wal_level=logical'] });
    client = new pg.Client({ connectionString: `postgres://postgres@127.0.0.1:${server.port}/postgres` });
    await client.connect();
    await client.query(`CREATE TABLE products (${COLUMN_TYPES.join(', ')}, PRIMARY KEY (vbid));
      ALTER TABLE products REPLICA IDENTITY FULL;
      CREATE TABLE listed (${COLUMN_TYPES.join(', ')}, PRIMARY KEY (${IDENTITY.join(', ')}))`);
  });
  afterAll(async () => {
    await client.end();
    await server.stop();
  });

  it(`has what a subscriber of PostgreSQL has, after every change of ${HISTORIES} histories`, {
    tags: ['slow'],
    timeout: 7_200_000,
  }, async () => {
    for (let seed = FIRST; seed < FIRST + HISTORIES; seed += AT_ONCE) {
      const seeds = Array.from({ length: Math.min(AT_ONCE, FIRST + HISTORIES - seed) }, (_, more) => seed + more);
      const asked: [seed: number, plan: Plan, published: Published][] = [];
      for (const one of seeds) {
        const plan = planOf(one);
        asked.push([one, plan, await askPostgres(client, plan)]);
      }
      await Promise.all(
        asked.map(async ([one, plan, published]) => {
          const isTable = one % TABLE_SHARE === 0;
          const shop = isTable ? tableShop(client, server.port, `shop_${one}`, plan.below) : memoryShop(plan.below);
          await follow(one, plan, published, shop);
        }),
      );
    }
  });
});
