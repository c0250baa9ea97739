import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { listen } from '@catchword/testing/listen';
import { natsAvailable } from '@catchword/testing/nats';
import { postgresAvailable, usePostgres } from '@catchword/testing/postgres';
import { redisAvailable } from '@catchword/testing/redis';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { useNats, useRedis } from '@catchword/testing/used-servers';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { sinkConfig } from '../../src/relay/sink-config.ts';
import { books, fed } from './feeding.ts';
import { natsTarget, postgresTarget } from './targets.ts';

/** Checks a sink as `catchword doctor` does. */
async function check(url: string, secret?: string): Promise<string> {
  const sink = await sinkConfig({ env: 'CATCHWORD_SINK_X', name: 'x', url, secret }).make();
  try {
    return await sink.check(AbortSignal.timeout(30_000));
  } finally {
    await sink.close();
  }
}

describe.skipIf(!postgresAvailable)('the check of PostgreSQL', { tags: ['stores'] }, () => {
  const postgres = usePostgres();
  const as = (user: string, table: string) => `postgres://${user}@127.0.0.1:${postgres.port}/postgres?table=${table}`;
  const exists = async (name: string) =>
    (await postgres.client.query<{ found: string | null }>('SELECT to_regclass($1) AS found', [name])).rows[0]?.found;
  beforeAll(async () => {
    await postgres.client.query('REVOKE CREATE ON SCHEMA public FROM PUBLIC; CREATE ROLE shop LOGIN');
  });

  it('tries to write and leaves nothing behind', async () => {
    expect(await check(as('postgres', 'fresh'))).toMatch(/^table fresh can be created and written/);
    expect(await exists('fresh')).toBeNull();
    expect(await exists('catchword_cursor')).toBeNull();
  });

  it('the check of PostgreSQL changes no rows and no cursor of a table in use', async () => {
    const { harness, target } = await fed(postgresTarget(postgres.port), 3);
    const state = async () => [
      (await postgres.client.query(`SELECT * FROM ${target.table} ORDER BY vbid`)).rows,
      (await postgres.client.query('SELECT * FROM catchword_cursor ORDER BY table_name')).rows,
    ];
    const before = await state();
    // While the relay holds the table.
    expect(await check(target.url)).toMatch(/^rows of table \S+ can be written and removed/);
    expect(await state()).toEqual(before);
    await harness.deliver(books(2, 2));
  });

  it('fails if the table cannot be created', async () => {
    await expect(check(as('shop', 'forbidden'))).rejects.toThrow(
      /may not create tables\. Run as their owner:\nCREATE TABLE/,
    );
  });

  it.each<[string, string, RegExp]>([
    ['without a column', 'ALTER TABLE t DROP COLUMN publisher', /lacks the columns publisher/],
    ['without a key', 'ALTER TABLE t DROP CONSTRAINT t_pkey', /no unique or exclusion constraint.*\(42P10\)/],
    ['with a mandatory column of its own', 'ALTER TABLE t ADD shelf text NOT NULL', /"shelf".*\(23502\)/],
    ['without the right to update', 'REVOKE UPDATE ON t FROM shop', /permission denied for table t \(42501\)/],
    ['without the right to select', 'REVOKE SELECT ON t FROM shop', /permission denied for table t \(42501\)/],
    [
      'without the right to insert a cursor',
      'REVOKE INSERT ON catchword_cursor FROM shop',
      /catchword_cursor \(42501\)/,
    ],
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

describe.skipIf(!redisAvailable)('the check of Redis', { tags: ['stores'] }, () => {
  const redis = useRedis();

  it('writes nothing', async () => {
    expect(await check(`${redis.server.url}?stream=fresh`)).toBe(
      'stream fresh can be written (nothing was); it has 0 entries',
    );
    expect(await redis.client.dbsize()).toBe(0);
  });

  it('fails for a user without the rights to deliver', async () => {
    const url = `redis://shop:pw@127.0.0.1:${redis.server.port}?stream=mine`;
    const rights = ['~mine', '~{mine}:catchword', '+@connection', '+@transaction', '+exists', '+xinfo', '+hgetall'];
    await redis.client.call('ACL', 'SETUSER', 'shop', 'on', '>pw', ...rights, '+hset', '+select', '+info');
    await expect(check(url)).rejects.toThrow(/NOPERM.*xadd/);
    await redis.client.call('ACL', 'SETUSER', 'shop', '+xadd');
    await expect(check(url)).rejects.toThrow(/NOPERM.*eval/);
    await redis.client.call('ACL', 'SETUSER', 'shop', '+eval');
    expect(await check(url)).toMatch(/^stream mine can be written/);
    await expect(check(url.replace('mine', 'other'))).rejects.toThrow(/NOPERM.*keys?/);
    expect(await redis.client.exists('mine')).toBe(0);
  });

  it('fails for a key that is not a stream, and a stream with foreign entries', async () => {
    await redis.client.set('text', 'x');
    await expect(check(`${redis.server.url}?stream=text`)).rejects.toThrow('WRONGTYPE');
    await redis.client.xadd('theirs', '*', 'a', 'b');
    await expect(check(`${redis.server.url}?stream=theirs`)).rejects.toThrow('this sink did not write entry');
  });
});

describe.skipIf(!natsAvailable)('the check of NATS', { tags: ['stores'] }, () => {
  const nats = useNats();

  it('the check of NATS creates no stream and publishes no text', async () => {
    const heard: string[] = [];
    nats.connection.subscribe('shop.fresh', { callback: (_error, message) => void heard.push(message.string()) });
    await nats.connection.flush();
    const found = await check(`nats://127.0.0.1:${nats.server.port}?subject=shop.fresh`);
    expect(found).toBe(
      'stream shop-fresh does not exist; the first delivery creates it; its user has the rights to write it',
    );
    expect((await nats.manager.getAccountInfo()).streams).toBe(0);
    await nats.connection.flush();
    expect(heard).toEqual(['']);
  });

  it('fails for a subject that belongs to another stream', async () => {
    await nats.manager.streams.add({ name: 'theirs', subjects: ['shop.>'] });
    onTestFinished(async () => void (await nats.manager.streams.delete('theirs')));
    const url = `nats://127.0.0.1:${nats.server.port}?subject=shop.books`;
    await expect(check(url)).rejects.toThrow('subject shop.books belongs to stream theirs');
    await expect(check(`${url}&stream=theirs`)).rejects.toThrow('must have shop.books alone');
  });

  it('counts the messages of a stream in use', async () => {
    const { target } = await fed(natsTarget(nats.server.port), 1);
    expect(await check(target.url)).toMatch(/^stream \S+ exists, with 1 message;/);
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
    const port = await listen(server.on('connection', () => connections++));
    expect(await check(`webhook+http://127.0.0.1:${port}/hook#allow=private`)).toBe(
      'can be reached; no request was sent, so its responses were not checked; without a secret, events are not signed',
    );
    expect(connections).toBe(1);
    expect(asked).toEqual([]);
    // TLS is tried as well; this server does not speak it.
    await expect(check(`webhook+https://127.0.0.1:${port}/hook#allow=private`)).rejects.toThrow('cannot be reached');
    expect(asked).toEqual([]);
  });

  it('fails if the port is closed', async () => {
    await expect(check('webhook+http://127.0.0.1:1/#allow=private')).rejects.toThrow('ECONNREFUSED');
  });
});

describe('the check of a file', () => {
  it('says what would be created, and does not create it', async () => {
    const directory = temporaryDirectory();
    expect(await check(`jsonl:${join(directory, 'out.jsonl')}`)).toBe('can be created');
    expect(await check(`jsonl:${join(directory, 'a', 'b', 'out.jsonl')}`)).toBe(
      `can be created, with its directory, in ${directory}`,
    );
    expect(existsSync(join(directory, 'a'))).toBe(false);
  });

  it('fails if its directory is a file', async () => {
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'file'), '');
    await expect(check(`jsonl:${join(directory, 'file', 'out.jsonl')}`)).rejects.toThrow('file is not a directory');
  });

  it.skipIf(process.getuid?.() === 0)('fails for a directory that may not be written', async () => {
    const directory = join(temporaryDirectory(), 'locked');
    mkdirSync(directory, { mode: 0o500 });
    await expect(check(`jsonl:${join(directory, 'out.jsonl')}`)).rejects.toThrow('EACCES');
  });
});
