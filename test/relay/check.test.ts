import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { join } from 'node:path';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect as connectNats, type NatsConnection } from '@nats-io/transport-node';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { sinkConfig } from '../../src/relay/sink-config.ts';
import { temporaryDirectory } from '../support/mirror.ts';
import { type NatsServer, natsAvailable, startNats } from '../support/nats.ts';
import { postgresAvailable, usePostgres } from '../support/postgres.ts';
import { type RedisServer, redisAvailable, startRedis } from '../support/redis.ts';
import { books, feeding } from './feeding.ts';
import { natsTarget, postgresTarget } from './targets.ts';

/** What `catchword doctor` finds out about a sink. */
async function check(url: string, secret?: string): Promise<string> {
  const sink = await sinkConfig({ env: 'CATCHWORD_SINK_X', name: 'x', url, secret }).make();
  try {
    return await sink.check(AbortSignal.timeout(30_000));
  } finally {
    await sink.close();
  }
}

describe.skipIf(!postgresAvailable)('the check of PostgreSQL', () => {
  const postgres = usePostgres();
  const as = (user: string, table: string) => `postgres://${user}@127.0.0.1:${postgres.port}/postgres?table=${table}`;
  const exists = async (name: string) =>
    (await postgres.client.query<{ found: string | null }>('SELECT to_regclass($1) AS found', [name])).rows[0]?.found;
  beforeAll(async () => {
    await postgres.client.query('REVOKE CREATE ON SCHEMA public FROM PUBLIC; CREATE ROLE shop LOGIN');
  });

  it('tries everything and leaves nothing behind', async () => {
    expect(await check(as('postgres', 'fresh'))).toMatch(/^table fresh can be made and written/);
    expect(await exists('fresh')).toBeNull();
    expect(await exists('catchword_cursor')).toBeNull();
  });

  it('changes neither rows nor the cursor of a table that is fed', async () => {
    const { bench, target, config } = await feeding(postgresTarget(postgres.port));
    bench.change(books(3, 1));
    bench.start(config);
    await bench.caughtUp();
    const state = async () => [
      (await postgres.client.query(`SELECT * FROM ${target.table} ORDER BY vbid`)).rows,
      (await postgres.client.query('SELECT * FROM catchword_cursor ORDER BY table_name')).rows,
    ];
    const before = await state();
    // While the relay holds the table.
    expect(await check(target.url)).toMatch(/^rows of table \S+ can be written and removed/);
    expect(await state()).toEqual(before);
    bench.change(books(2, 2));
    await bench.caughtUp();
  });

  it('fails where the table cannot be made', async () => {
    await expect(check(as('shop', 'forbidden'))).rejects.toThrow(
      /may not create or alter tables\. Run as their owner: CREATE TABLE/,
    );
  });

  it.each<[string, string, RegExp]>([
    ['whose seq is text', 'ALTER TABLE t ALTER seq TYPE text', /operator does not exist.*\(42883\)/],
    ['that lacks a column', 'ALTER TABLE t DROP COLUMN publisher', /has no column publisher/],
    ['without a key', 'ALTER TABLE t DROP CONSTRAINT t_pkey', /no unique or exclusion constraint.*\(42P10\)/],
    ['with a column of its own that must be filled', 'ALTER TABLE t ADD shelf text NOT NULL', /"shelf".*\(23502\)/],
    ['that may not be changed', 'REVOKE UPDATE ON t FROM shop', /permission denied for table t \(42501\)/],
    ['that may not be read', 'REVOKE SELECT ON t FROM shop', /permission denied for table t \(42501\)/],
    ['whose cursor may not be written', 'REVOKE INSERT ON catchword_cursor FROM shop', /catchword_cursor \(42501\)/],
  ])('fails for a table %s', async (_name, change, message) => {
    await postgres.client.query(
      'DROP SCHEMA IF EXISTS own CASCADE; CREATE SCHEMA own; GRANT ALL ON SCHEMA own TO shop',
    );
    const path = `SET search_path = own`;
    const sink = await sinkConfig({ env: 'X', name: 'x', url: as('postgres', 'own.t'), secret: undefined }).make();
    await sink.open({ incarnation: 'a', generation: 1, cursor: 0, at: 0, late: 0 }, 0, AbortSignal.timeout(30_000));
    await sink.close();
    await postgres.client.query(`${path}; GRANT ALL ON ALL TABLES IN SCHEMA own TO shop`);
    expect(await check(as('shop', 'own.t'))).toMatch(/^rows of table own\.t can be written/);
    await postgres.client.query(`${path}; ${change}; RESET search_path`);
    await expect(check(as('shop', 'own.t'))).rejects.toThrow(message);
  });
});

describe.skipIf(!redisAvailable)('the check of Redis', () => {
  let server: RedisServer;
  let admin: Redis;
  beforeAll(async () => {
    server = await startRedis();
    admin = new Redis(server.url);
  });
  afterAll(async () => {
    admin.disconnect();
    await server.stop();
  });

  it('writes nothing', async () => {
    expect(await check(`${server.url}?stream=fresh`)).toBe(
      'stream fresh can be written (nothing was); it has 0 entries',
    );
    expect(await admin.dbsize()).toBe(0);
  });

  it('fails for a user without the rights that delivery needs', async () => {
    const url = `redis://shop:pw@127.0.0.1:${server.port}?stream=mine`;
    const rights = ['~mine', '~{mine}:catchword', '+@connection', '+@transaction', '+exists', '+xinfo', '+hgetall'];
    await admin.call('ACL', 'SETUSER', 'shop', 'on', '>pw', ...rights, '+hset', '+select', '+info');
    await expect(check(url)).rejects.toThrow(/NOPERM.*xadd/);
    await admin.call('ACL', 'SETUSER', 'shop', '+xadd');
    expect(await check(url)).toMatch(/^stream mine can be written/);
    await expect(check(url.replace('mine', 'other'))).rejects.toThrow(/NOPERM.*keys?/);
    expect(await admin.exists('mine')).toBe(0);
  });

  it('fails where something else has that name, or where others write', async () => {
    await admin.set('text', 'x');
    await expect(check(`${server.url}?stream=text`)).rejects.toThrow('WRONGTYPE');
    await admin.xadd('theirs', '*', 'a', 'b');
    await expect(check(`${server.url}?stream=theirs`)).rejects.toThrow('which is not of this sink');
  });
});

describe.skipIf(!natsAvailable)('the check of NATS', () => {
  let server: NatsServer;
  let connection: NatsConnection;
  beforeAll(async () => {
    server = await startNats();
    connection = await connectNats({ servers: `127.0.0.1:${server.port}` });
  });
  afterAll(async () => {
    await connection.close();
    await server.stop();
  });

  it('makes no stream and publishes nothing', async () => {
    const manager = await jetstreamManager(connection);
    const heard: string[] = [];
    connection.subscribe('>', { callback: (_error, { subject }) => void heard.push(subject) });
    await connection.flush();
    const found = await check(`nats://127.0.0.1:${server.port}?subject=shop.fresh`);
    expect(found).toBe(
      'stream shop-fresh is missing; the first delivery makes it; the right to publish was not checked',
    );
    expect((await manager.getAccountInfo()).streams).toBe(0);
    await connection.flush();
    expect(heard).not.toContain('shop.fresh');
  });

  it('fails for a subject that belongs to another stream', async () => {
    const manager = await jetstreamManager(connection);
    await manager.streams.add({ name: 'theirs', subjects: ['shop.>'] });
    onTestFinished(async () => void (await manager.streams.delete('theirs')));
    const url = `nats://127.0.0.1:${server.port}?subject=shop.books`;
    await expect(check(url)).rejects.toThrow('subject shop.books belongs to stream theirs');
    await expect(check(`${url}&stream=theirs`)).rejects.toThrow('must be for shop.books alone');
  });

  it('counts the messages of a stream that is fed', async () => {
    const { bench, target, config } = await feeding(natsTarget(server.port));
    bench.change(books(1, 1));
    bench.start(config);
    await bench.caughtUp();
    expect(await check(target.url)).toMatch(/^stream \S+ is there, with 1 message;/);
  });
});

describe('the check of a webhook', () => {
  it('connects and sends nothing', async () => {
    const asked: string[] = [];
    let connections = 0;
    const server = createServer(({ method }, response) => {
      asked.push(method ?? '');
      response.end();
    });
    server.on('connection', () => connections++).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    expect(await check(`webhook+http://127.0.0.1:${port}/hook#allow=private`)).toBe(
      'can be reached; nothing was sent, so its answers were not checked; without a secret, events are not signed',
    );
    expect(connections).toBe(1);
    expect(asked).toEqual([]);
    // TLS is tried, too: this server does not speak it.
    await expect(check(`webhook+https://127.0.0.1:${port}/hook#allow=private`)).rejects.toThrow('cannot be reached');
    expect(asked).toEqual([]);
  });

  it('fails where nothing listens', async () => {
    const server = createTcpServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    await expect(check(`webhook+http://127.0.0.1:${port}/#allow=private`)).rejects.toThrow('ECONNREFUSED');
  });
});

describe('the check of a file', () => {
  it('says what would be made, and makes nothing', async () => {
    const directory = temporaryDirectory();
    expect(await check(`jsonl:${join(directory, 'out.jsonl')}`)).toBe('can be made');
    expect(await check(`jsonl:${join(directory, 'a', 'b', 'out.jsonl')}`)).toBe(
      `can be made, and so can its directory in ${directory}`,
    );
    expect(existsSync(join(directory, 'a'))).toBe(false);
  });

  it('fails where a file stands in the way of its directory', async () => {
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'file'), '');
    await expect(check(`jsonl:${join(directory, 'file', 'out.jsonl')}`)).rejects.toThrow('file is not a directory');
  });

  it("fails for a file that is not catchword's own, and leaves it as it is", async () => {
    const path = join(temporaryDirectory(), 'notes.txt');
    writeFileSync(path, 'dear diary\n');
    await expect(check(`jsonl:${path}`)).rejects.toThrow('does not end with an event');
    expect(readFileSync(path, 'utf8')).toBe('dear diary\n');
  });

  it.skipIf(process.getuid?.() === 0)('fails for a directory that may not be written', async () => {
    const directory = join(temporaryDirectory(), 'locked');
    mkdirSync(directory, { mode: 0o500 });
    await expect(check(`jsonl:${join(directory, 'out.jsonl')}`)).rejects.toThrow('EACCES');
  });
});
