import { getEventListeners, once } from 'node:events';
import { createServer, Socket } from 'node:net';
import { createConnectionLife } from '@catchword/sink-kit/connection-scope';
import type { Mark, Sink } from '@catchword/sink-kit/sink';
import { listen } from '@catchword/testing/listen';
import { natsAvailable } from '@catchword/testing/nats';
import { postgresAvailable, usePostgres } from '@catchword/testing/postgres';
import { redisAvailable } from '@catchword/testing/redis';
import { useNats, useRedis } from '@catchword/testing/used-servers';
import pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import { until } from '../../../src/contract/harness.ts';
import { ADDRESSES } from '../../../test/relay/addresses.ts';
import { books, configAt, fed, fedBefore, NEVER } from '../../../test/relay/feeding.ts';
import { natsTarget, postgresTarget, redisTarget } from '../../../test/relay/targets.ts';

const MARK: Mark = { incarnation: 'a', generation: 1, cursor: 0, at: 0, late: 0 };

/** A server that accepts connections and answers each piece of data with `answer`, or never. */
async function server(answer: (piece: Buffer) => Buffer | undefined = () => undefined) {
  const open = new Set<Socket>();
  let accepted = 0;
  const port = await listen(
    createServer((socket) => {
      accepted++;
      open.add(socket);
      socket.on('error', () => {}).on('close', () => open.delete(socket));
      socket.on('data', (piece) => {
        const text = answer(piece);
        if (text !== undefined) socket.write(text);
      });
    }),
  );
  return { port, open, accepted: () => accepted };
}

/** Accepts any user, and then never answers: authentication is done, and it is ready. */
const LOGGED_IN = Buffer.from([82, 0, 0, 0, 8, 0, 0, 0, 0, 90, 0, 0, 0, 5, 73]);
const isStartup = (piece: Buffer): boolean => piece[0] === 0;

const SILENT: Record<string, (port: number) => string> = {
  ...ADDRESSES,
  'postgres with TLS': (port) => `${ADDRESSES.postgres(port)}?sslmode=require`,
  rediss: (port) => `rediss://127.0.0.1:${port}`,
  'webhook with TLS': (port) => `webhook+https://127.0.0.1:${port}/#allow=private`,
};

const EVENT = { id: 'a:1', seq: 1, at: 0, op: 'created', vbid: 'P1', body: '{}', text: '{}' } as const;

/** Opens the sink and delivers. */
async function use(sink: Sink, signal: AbortSignal): Promise<void> {
  await sink.open(MARK, 1, signal);
  await sink.deliver([EVENT], { ...MARK, cursor: 1 }, signal);
}

describe('a store that says nothing', () => {
  it.each(Object.entries(SILENT))('%s: keeps no connection that was cut short', async (_name, url) => {
    const silent = await server();
    for (let times = 1; times <= 3; times++) {
      const sink = await configAt(url(silent.port)).make();
      const given = new AbortController();
      const failed = expect(use(sink, given.signal)).rejects.toThrow();
      await until('it connects', () => silent.accepted() >= times);
      given.abort();
      await failed;
      await sink.close();
      await until('nothing is left', () => silent.open.size === 0);
    }
  });

  it.each(Object.entries(SILENT))('%s: keeps none when it is closed while it connects', async (_name, url) => {
    const silent = await server();
    const sink = await configAt(url(silent.port)).make();
    const failed = expect(use(sink, NEVER)).rejects.toThrow();
    await until('it connects', () => silent.accepted() > 0);
    await sink.close();
    await failed;
    await until('nothing is left', () => silent.open.size === 0);
  });

  it('PostgreSQL, after the login: keeps no connection', async () => {
    const silent = await server((piece) => (isStartup(piece) ? LOGGED_IN : undefined));
    const sink = await configAt(ADDRESSES.postgres(silent.port)).make();
    const failed = expect(use(sink, AbortSignal.timeout(300))).rejects.toThrow();
    await failed;
    await sink.close();
    await until('nothing is left', () => silent.open.size === 0);
  });

  it('keeps no connection for the size of a store', async () => {
    const silent = await server();
    const sink = await configAt(ADDRESSES.redis(silent.port)).make();
    await expect(sink.size?.(AbortSignal.timeout(200))).rejects.toThrow();
    await until('nothing is left', () => silent.open.size === 0);
  });
});

describe.skipIf(!postgresAvailable)('PostgreSQL', { tags: ['stores'] }, () => {
  const postgres = usePostgres();
  const backends = async () => {
    const text = `SELECT query FROM pg_stat_activity WHERE application_name = 'catchword'`;
    return (await postgres.client.query(text)).rowCount ?? 0;
  };

  it('no backends pile up behind a lock', async () => {
    const { target } = await fedBefore(postgresTarget(postgres.port), 3);
    await until('the relay has left', async () => (await backends()) === 0);
    // Another client, because a transaction sees pg_stat_activity as it was.
    const other = new pg.Client({ connectionString: `postgres://postgres@127.0.0.1:${postgres.port}/postgres` });
    await other.connect();
    onTestFinished(() => other.end());
    await other.query(`BEGIN; LOCK TABLE ${target.table}`);
    for (let times = 0; times < 5; times++) {
      const sink = await configAt(target.url).make();
      await expect(use(sink, AbortSignal.timeout(500))).rejects.toThrow();
      await sink.close();
    }
    // The backends are still blocked unless their statements were cancelled.
    await until('every backend has ended', async () => (await backends()) === 0);
  });

  it('gives each statement a limit at the server', async () => {
    const { target, harness } = await fed(postgresTarget(postgres.port), 3);
    await postgres.client.query(`CREATE TABLE seen (setting text);
      CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO seen VALUES (current_setting('statement_timeout')); RETURN NULL; END $$;
      CREATE TRIGGER look AFTER INSERT ON ${target.table} EXECUTE FUNCTION look()`);
    await harness.deliver(books(5, 2));
    expect((await postgres.client.query('SELECT DISTINCT setting FROM seen')).rows).toEqual([{ setting: '1min' }]);
    await harness.stop();
    await until('the relay has left', async () => (await backends()) === 0);
  });
});

describe.skipIf(!redisAvailable)('Redis', { tags: ['stores'] }, () => {
  const redis = useRedis();

  it('a Redis has one connection of a sink, over failures, and none after it', async () => {
    const count = async () =>
      String(await redis.client.client('LIST'))
        .trim()
        .split('\n').length - 1;
    const { target, harness } = await fed(redisTarget(redis.server.port), 3);
    for (let times = 1; times <= 5; times++) {
      await redis.client.del(target.stream);
      await harness.deliver(books(3, times + 1));
      await until('one is left', async () => (await count()) === 1 + 1);
    }
    await harness.stop();
    await until('nothing is left', async () => (await count()) === 1);
  });
});

describe.skipIf(!natsAvailable)('NATS', { tags: ['stores'] }, () => {
  const nats = useNats();

  it('a NATS has one connection of a sink, over failures, and none after it', async () => {
    const { target, harness } = await fed(natsTarget(nats.server.port), 3);
    // The server counts its own client of the test as well.
    const count = async (): Promise<number> => {
      const response = await fetch(`http://127.0.0.1:${nats.server.monitor}/connz`);
      return ((await response.json()) as { num_connections: number }).num_connections - 1;
    };
    for (let times = 1; times <= 5; times++) {
      await nats.manager.streams.delete(target.stream);
      await harness.deliver(books(3, times + 1));
      await until('one is left', async () => (await count()) === 1);
    }
    await harness.stop();
    await until('nothing is left', async () => (await count()) === 0);
  });
});

it('a store that closes each connection leaves nothing of it behind', async () => {
  const life = createConnectionLife();
  onTestFinished(() => life.end());
  const before = getEventListeners(life.signal, 'abort').length;
  for (let times = 0; times < 3; times++) {
    const socket = new Socket();
    life.own(socket);
    const closed = once(socket, 'close');
    socket.destroy();
    await closed;
  }
  expect(getEventListeners(life.signal, 'abort')).toHaveLength(before);
});
