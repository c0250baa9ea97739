import { cpSync, renameSync, rmSync } from 'node:fs';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect as connectNats } from '@nats-io/transport-node';
import { Redis } from 'ioredis';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { until } from '../../src/relay/contract/workbench.ts';
import { sinkConfig } from '../../src/relay/settings.ts';
import { type NatsServer, natsAvailable, startNats } from '../support/nats.ts';
import { type PostgresServer, postgresAvailable, startPostgres } from '../support/postgres.ts';
import { type RedisServer, redisAvailable, startRedis } from '../support/redis.ts';
import { books, feeding } from './feeding.ts';
import { natsTarget, postgresTarget, redisTarget } from './targets.ts';

describe.skipIf(!postgresAvailable)('postgres', () => {
  let server: PostgresServer;
  let client: pg.Client;
  beforeAll(async () => {
    server = await startPostgres({ settings: ['fsync=off'] });
    client = new pg.Client({ connectionString: `postgres://postgres@127.0.0.1:${server.port}/postgres` });
    await client.connect();
  });
  afterAll(async () => {
    await client.end();
    await server.stop();
  });

  it('keeps typed columns, the body as JSON, and the cursor beside the table', async () => {
    const { bench, target, config } = await feeding(postgresTarget(server.port));
    const body = JSON.stringify({
      ...{
        vbid: 'V1',
        title: 'A "Title" \\ {1,2}',
        kind: { name: 'book' },
        format: 'epub',
        publisher: { name: 'Ünï' },
      },
      identifiers: { print_isbn_canonical: 9780000000002, eisbn_canonical: '9780000000019' },
      price: 10.5,
    });
    bench.change([{ vbid: 'V1', body }, ...books(2, 1)]);
    bench.start(config);
    await bench.caughtUp();
    const { rows } = await client.query(`SELECT * FROM ${target.table} WHERE vbid = 'V1'`);
    expect(rows).toEqual([
      {
        ...{ vbid: 'V1', title: 'A "Title" \\ {1,2}', kind: 'book', format: 'epub', publisher: 'Ünï' },
        ...{ print_isbn: '9780000000002', e_isbn: '9780000000019', body: JSON.parse(body), seq: '1', removed_at: null },
        changed_at: new Date(bench.events()[0]?.at ?? 0),
      },
    ]);
    const { rows: cursors } = await client.query(`SELECT * FROM catchword_cursor WHERE table_name = $1`, [
      `public.${target.table}`,
    ]);
    expect(cursors).toEqual([
      {
        table_name: `public.${target.table}`,
        incarnation: bench.store.incarnation,
        generation: '1',
        cursor: '3',
        at: String(bench.events()[2]?.at),
        late: '0',
      },
    ]);
  });

  it('deletes what is removed, or keeps it as a tombstone', async () => {
    for (const [options, left] of [
      ['', []],
      ['&removals=tombstone', [{ vbid: 'P0', seq: '2', gone: true }]],
    ] as const) {
      const { bench, target, config } = await feeding(postgresTarget(server.port, options));
      bench.start(config);
      bench.change(books(1, 1));
      await bench.caughtUp();
      bench.change([{ vbid: 'P0', body: null }]);
      await bench.caughtUp();
      const { rows } = await client.query(`SELECT vbid, seq, removed_at IS NOT NULL AS gone FROM ${target.table}`);
      expect(rows).toEqual(left);
      bench.change(books(1, 2));
      await bench.caughtUp();
      expect((await target.read()).products).toEqual(new Map([['P0', { vbid: 'P0', version: 2 }]]));
    }
  });

  it('parks what PostgreSQL cannot hold, and nothing else', async () => {
    const { bench, target, config } = await feeding(postgresTarget(server.port));
    bench.change(books(40, 1));
    bench.change([{ vbid: 'NUL', body: '{"vbid":"NUL","title":"a\\u0000b"}' }]);
    bench.change(books(40, 2));
    bench.start(config);
    await bench.caughtUp();
    expect(bench.store.sinks.parked(bench.sink().id)).toMatchObject([{ vbid: 'NUL', state: 'refused' }]);
    expect([...(await target.read()).products]).toHaveLength(40);
  });

  it('fills a table anew that was dropped', async () => {
    const { bench, target, config } = await feeding(postgresTarget(server.port));
    bench.start(config);
    bench.change(books(30, 1));
    await bench.caughtUp();
    await bench.stop();
    await client.query(`DROP TABLE ${target.table}`);
    bench.start(config);
    bench.change(books(1, 2));
    await until('all are there', async () => (await target.read().catch(() => null))?.products.size === 30);
  });

  it('fills a table anew that was emptied', async () => {
    const { bench, target, config } = await feeding(postgresTarget(server.port));
    bench.start(config);
    bench.change(books(30, 1));
    await bench.caughtUp();
    await bench.stop();
    await client.query(`TRUNCATE ${target.table}`);
    bench.start(config);
    bench.change(books(1, 2));
    await until('all are there', async () => (await target.read()).products.size === 30);
    await bench.caughtUp();
    expect((await target.read()).products).toEqual(bench.living());
  });

  it('goes on with a table however the settings spell it', async () => {
    const { bench, target, config } = await feeding(postgresTarget(server.port));
    bench.start(config);
    bench.change(books(5, 1));
    await bench.caughtUp();
    await bench.stop();
    bench.change([{ vbid: 'P3', body: null }]);
    const url = target.url.replace('table=', 'table=public.');
    bench.start(sinkConfig({ env: 'SINK', name: config.name, url, secret: undefined }));
    await bench.caughtUp();
    expect((await target.read()).products).toEqual(bench.living());
  });

  it('does not mix with rows that nobody knows how old they are', async () => {
    const { bench, target, config } = await feeding(postgresTarget(server.port));
    bench.start(config);
    bench.change(books(5, 1));
    await bench.caughtUp();
    await bench.stop();
    // As a dump leaves it that was restored without the cursor.
    await client.query('DELETE FROM catchword_cursor WHERE table_name = $1', [`public.${target.table}`]);
    bench.change([{ vbid: 'P3', body: null }]);
    bench.start(config);
    await until('it stops', () => bench.sink().state === 'stopped');
    expect((await target.read()).products.size).toBe(5);
    bench.store.write(() => {
      bench.store.sinks.replay(bench.sink().id, 0, true);
      bench.store.sinks.setState(bench.sink().id, 'running');
    });
    await bench.caughtUp();
    expect((await target.read()).products).toEqual(bench.living());
  });

  it('replaces what another mirror delivered, when it is told to', async () => {
    const first = await feeding(postgresTarget(server.port));
    first.bench.change(books(50, 1));
    first.bench.start(first.config);
    await first.bench.caughtUp();
    await first.bench.stop();
    const { bench, config } = await feeding(Promise.resolve({ ...first.target, remove: async () => {} }));
    bench.change(books(3, 2));
    bench.start(config);
    await until('it stops', () => bench.store.sinks.get('contract')?.state === 'stopped');
    expect((await first.target.read()).products.size).toBe(50);
    bench.store.write(() => {
      bench.store.sinks.replay(bench.sink().id, 0, true);
      bench.store.sinks.setState(bench.sink().id, 'running');
    });
    await bench.caughtUp();
    expect((await first.target.read()).products).toEqual(bench.living());
  });

  it('replaces what a later state of the mirror delivered, which was restored from a backup', async () => {
    const first = await feeding(postgresTarget(server.port));
    first.bench.start(first.config);
    first.bench.change(books(5, 1));
    await first.bench.caughtUp();
    await first.bench.stop();
    const { table } = first.target;
    await client.query(`UPDATE catchword_cursor SET cursor = 90 WHERE table_name = 'public.${table}'`);
    await client.query(`UPDATE ${table} SET seq = 90, body = '{"vbid":"P1","of":"a lost future"}' WHERE vbid = 'P1'`);
    await client.query(`INSERT INTO ${table} (vbid, body, seq, changed_at) VALUES ('GHOST', '{}', 80, now())`);
    first.bench.start(first.config);
    await until('it stops', () => first.bench.sink().state === 'stopped');
    expect(first.bench.sink().error).toContain('a later state of this mirror');
    first.bench.store.write(() => {
      first.bench.store.sinks.replay(first.bench.sink().id, 0, true);
      first.bench.store.sinks.setState(first.bench.sink().id, 'running');
    });
    await first.bench.caughtUp();
    expect((await first.target.read()).products).toEqual(first.bench.living());
  });

  it('says what is wrong with the settings, and goes on when it is mended', async () => {
    const { bench, target, config } = await feeding(postgresTarget(server.port));
    await client.query(`CREATE TABLE ${target.table} (vbid integer)`);
    bench.change(books(3, 1));
    bench.start(config);
    await until('the failure is noted', () => bench.store.sinks.get('contract')?.error != null);
    expect(bench.sink()).toMatchObject({
      state: 'running',
      error: expect.stringMatching(/^PostgreSQL: .*\(42\d+\)$/),
    });
    await client.query(`DROP TABLE ${target.table}`);
    await bench.caughtUp();
    expect((await target.read()).products).toEqual(bench.living());
  });
});

describe.skipIf(!redisAvailable)('redis', () => {
  let server: RedisServer;
  let redis: Redis;
  beforeAll(async () => {
    server = await startRedis();
    redis = new Redis(server.port, '127.0.0.1');
  });
  afterAll(async () => {
    redis.disconnect();
    await server.stop();
  });

  it('names entries by generation and seq, and keeps about maxlen of them', async () => {
    const { bench, target, config } = await feeding(redisTarget(server.port, '&maxlen=100'));
    bench.start(config);
    for (let round = 1; round <= 5; round++) bench.change(books(200, round));
    await bench.caughtUp();
    const newest = await redis.xrevrange(target.stream, '+', '-', 'COUNT', 1);
    expect(newest[0]?.[0]).toBe('1-1000');
    expect(await redis.xlen(target.stream)).toBeLessThan(400);
    expect(await redis.hgetall(`{${target.stream}}:catchword`)).toEqual({
      ...{ incarnation: bench.store.incarnation, generation: '1', cursor: '1000', late: '0' },
      at: String(bench.events(999)[0]?.at),
    });
  });

  it('is fed anew when it was flushed', async () => {
    const { bench, target, config } = await feeding(redisTarget(server.port));
    bench.start(config);
    bench.change(books(30, 1));
    await bench.caughtUp();
    await redis.flushall();
    bench.change(books(1, 2));
    await until('all is there', async () => (await target.read()).seqs?.length === 31);
    expect((await target.read()).products).toEqual(bench.living());
  });

  it('is fed anew when its stream was removed', async () => {
    const { bench, target, config } = await feeding(redisTarget(server.port));
    bench.start(config);
    bench.change(books(30, 1));
    await bench.caughtUp();
    await redis.del(target.stream);
    bench.change(books(1, 2));
    await until('all is there', async () => (await target.read()).seqs?.length === 31);
    expect((await target.read()).products).toEqual(bench.living());
  });

  it('does not write between the entries of somebody else', async () => {
    const { bench, target, config } = await feeding(redisTarget(server.port));
    await redis.xadd(target.stream, '*', 'theirs', '1');
    bench.change(books(3, 1));
    bench.start(config);
    await until('the failure is noted', () => bench.store.sinks.get('contract')?.error != null);
    expect(bench.sink().error).toContain('which is not of this sink');
    expect(await redis.xlen(target.stream)).toBe(1);
  });
});

describe.skipIf(!natsAvailable)('nats', () => {
  let server: NatsServer;
  beforeAll(async () => {
    server = await startNats();
  });
  afterAll(() => server.stop());

  async function manager() {
    const connection = await connectNats({ servers: `127.0.0.1:${server.port}` });
    onTestFinished(() => connection.close());
    return await jetstreamManager(connection);
  }

  it('goes back to where the server is that lost its tail', async () => {
    const { bench, target, config } = await feeding(natsTarget(server.port));
    bench.start(config);
    bench.change(books(27, 1));
    await bench.caughtUp();
    // As a server starts that had not written its last messages to the disk when the power went.
    await server.kill('SIGTERM');
    cpSync(server.directory, `${server.directory}.copy`, { recursive: true });
    await server.restart();
    bench.change(books(3, 2));
    await bench.caughtUp();
    await server.kill('SIGKILL');
    rmSync(server.directory, { recursive: true });
    renameSync(`${server.directory}.copy`, server.directory);
    await server.restart();
    expect((await target.read()).seqs).toHaveLength(27);
    bench.change(books(1, 3));
    await until('all is there', async () => (await target.read()).seqs?.length === 31);
    expect((await target.read()).seqs).toEqual(Array.from({ length: 31 }, (_, index) => index + 1));
  });

  it('goes back behind messages that were deleted', async () => {
    const { bench, target, config } = await feeding(natsTarget(server.port));
    bench.start(config);
    bench.change(books(30, 1));
    await bench.caughtUp();
    await bench.stop();
    const { streams } = await manager();
    for (const seq of [28, 29, 30]) await streams.deleteMessage(target.stream, seq);
    bench.change(books(1, 2));
    bench.start(config);
    await until('all is there', async () => (await target.read()).seqs?.length === 31);
    expect((await target.read()).seqs).toEqual(Array.from({ length: 31 }, (_, index) => index + 1));
  });

  it('is fed anew where the stream was deleted', async () => {
    const { bench, target, config } = await feeding(natsTarget(server.port));
    bench.start(config);
    bench.change(books(30, 1));
    await bench.caughtUp();
    const { streams } = await manager();
    await streams.delete(target.stream);
    bench.change(books(1, 2));
    await until('all is there', async () => (await target.read().catch(() => null))?.seqs?.length === 31);
    expect((await target.read()).products).toEqual(bench.living());
  });

  it('is fed anew where the stream was made anew, by somebody else', async () => {
    const { bench, target, config } = await feeding(natsTarget(server.port));
    bench.start(config);
    bench.change(books(30, 1));
    await bench.caughtUp();
    const { streams } = await manager();
    await streams.delete(target.stream);
    await streams.add({ name: target.stream, subjects: [`${target.stream}.products`] });
    bench.change(books(1, 2));
    await until('all is there', async () => (await target.read()).seqs?.length === 31);
    expect((await target.read()).products).toEqual(bench.living());
  });

  it('loses nothing where somebody else writes into its stream', async () => {
    const { bench, target, config } = await feeding(natsTarget(server.port));
    bench.start(config);
    bench.change(books(3, 1));
    await bench.caughtUp();
    const connection = await connectNats({ servers: `127.0.0.1:${server.port}` });
    onTestFinished(() => connection.close());
    await jetstream(connection).publish(`${target.stream}.products`, 'theirs');
    bench.change(books(3, 2));
    await until('it is told', () => bench.sink().error !== null);
    expect(bench.sink()).toMatchObject({ cursor: 3, error: expect.stringMatching(/wrong last|not of this sink/) });
    const { streams } = await manager();
    await streams.deleteMessage(target.stream, 4);
    bench.store.write(() => bench.store.sinks.setState(bench.sink().id, 'running'));
    await bench.caughtUp();
    expect((await target.read()).seqs).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it('parks what is larger than the stream takes', async () => {
    const { bench, target, config } = await feeding(natsTarget(server.port));
    const { streams } = await manager();
    await streams.add({ name: target.stream, subjects: [`${target.stream}.products`], max_msg_size: 3_000 });
    bench.start(config);
    bench.change(books(3, 1));
    bench.change([{ vbid: 'L', body: JSON.stringify({ vbid: 'L', long: 'x'.repeat(3_000) }) }]);
    bench.change(books(2, 2));
    await bench.caughtUp();
    expect((await target.read()).seqs).toEqual([1, 2, 3, 5, 6]);
  });

  it('parks what is larger than the server takes', async () => {
    const { bench, target, config } = await feeding(natsTarget(server.port));
    bench.start(config);
    bench.change(books(3, 1));
    bench.change([{ vbid: 'L', body: JSON.stringify({ vbid: 'L', long: 'x'.repeat(1_100_000) }) }]);
    bench.change(books(2, 2));
    await bench.caughtUp();
    expect(bench.store.sinks.parked(bench.sink().id)).toMatchObject([
      { vbid: 'L', state: 'refused', reason: expect.stringContaining('that the server takes') },
    ]);
    expect((await target.read()).seqs).toEqual([1, 2, 3, 5, 6]);
  });

  it('takes no stream that holds other subjects', async () => {
    const { bench, target, config } = await feeding(natsTarget(server.port));
    const { streams } = await manager();
    await streams.add({ name: target.stream, subjects: [`${target.stream}.>`] });
    bench.change(books(3, 1));
    bench.start(config);
    await until('the failure is noted', () => bench.store.sinks.get('contract')?.error != null);
    expect(bench.sink().error).toContain('it must be for');
  });

  it('survives that the server is killed while it is fed', async () => {
    const { bench, target, config } = await feeding(natsTarget(server.port));
    bench.start(config);
    for (let round = 1; round <= 5; round++) {
      bench.change(books(200, round));
      await until('it moves', () => bench.sink().cursor > (round - 1) * 200);
      await server.kill('SIGKILL');
      await server.restart();
    }
    await bench.caughtUp();
    await until('all is there', async () => (await target.read().catch(() => null))?.seqs?.length === 1_000);
    expect((await target.read()).seqs).toEqual(Array.from({ length: 1_000 }, (_, index) => index + 1));
  });
});
