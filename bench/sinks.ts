/**
 * Measures how fast each sink is fed from a log of a million records, compared with feeding its store by a bare loop.
 * `npx tsx bench/sinks.ts [records] [--only KIND] [--runs N]`; needs redis-server, nats-server, PostgreSQL and MariaDB. Takes 2
 * minutes for each of the 5 runs, whose medians are printed.
 */

import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, fdatasyncSync, openSync, writeSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { eventText } from '@catchword/catalog/event';
import { FORMATS } from '@catchword/sink-s3/row-file';
import { startMariadb } from '@catchword/testing/mariadb';
import { startNats } from '@catchword/testing/nats';
import { startPostgres } from '@catchword/testing/postgres';
import { startRedis } from '@catchword/testing/redis';
import { type FakeS3, S3_KEY, startS3 } from '@catchword/testing/s3';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect as connectNats } from '@nats-io/transport-node';
import BetterSqlite from 'better-sqlite3';
import { Redis } from 'ioredis';
import { Pool } from 'undici';
import { sinkConfig } from '../src/relay/sink-config.ts';
import { table } from '../src/report/text.ts';
import { createHistory } from '../src/store/history/history.ts';
import { writeUnder } from '../src/store/schema/lease.ts';
import { openStore, type Store } from '../src/store/store.ts';
import { prepareBatches } from './bare-mysql.ts';
import { checkpoint, prepareCopy } from './bare-postgres.ts';
import { CLI, environment, inDirectory, measureSync, median, peakBytes, print, serveSandbox } from './process.ts';

const { values: flags, positionals } = parseArgs({
  options: { only: { type: 'string' }, runs: { type: 'string', default: '5' } },
  allowPositionals: true,
});
const records = Number(positionals[0] ?? 1_000_000);
/** PostgreSQL must not vacuum the table of one measurement during the next. */
const IDLE = { settings: ['autovacuum=off'] };
const SOURCE = 'http://127.0.0.1/v4/products';

type Chunk = readonly { readonly text: string; readonly vbid: string; readonly body: string; readonly seq: number }[];

/** A receiver in its own process that reads and confirms everything. */
async function receive(): Promise<void> {
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(204).end());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  process.send?.(typeof address === 'object' ? address?.port : 0);
  process.on('disconnect', () => process.exit());
}

async function timed(work: () => Promise<void> | void): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

async function fill(db: string): Promise<void> {
  const sandbox = await serveSandbox('--no-details', '--items', String(records));
  await measureSync(environment(sandbox.url, db), '--full');
  await sandbox.stop();
}

/** The most characters of a batch. Of these sinks, only files reach it. */
const BATCH_CHARS = 4_000_000;

/** All events in batches like those of a sink with at most `most` events, created before the measurement. */
async function chunksOf(store: Store, most: number): Promise<Chunk[]> {
  const history = createHistory(store);
  const chunks: Chunk[] = [];
  for (let seq = 0; ; ) {
    const chunk: Chunk[number][] = [];
    let chars = 0;
    for (const change of history.after(seq, most)) {
      const text = eventText(change, store.incarnation, SOURCE);
      chars += text.length + 1;
      if (chunk.length > 0 && chars > BATCH_CHARS) break;
      chunk.push({ text, vbid: change.vbid, body: change.body ?? '{}', seq: change.seq });
    }
    const last = chunk.at(-1);
    if (last === undefined) return chunks;
    seq = last.seq;
    chunks.push(chunk);
  }
}

interface Fed {
  readonly ms: number;
  readonly peak: number;
}

interface Sinks {
  readonly [name: string]: string;
}

/** Feeds sinks from a relay in its own process, until all but `dead` have all events. */
async function feed(store: Store, sinks: Sinks, mode: 'backfill' | 'live', dead?: string): Promise<Fed> {
  writeUnder(store.relayLease, Date.now(), (writer) => writer.sinks.configureOnly([]));
  const names = Object.keys(sinks);
  const env: Record<string, string> = { CATCHWORD_BASE_URL: 'http://127.0.0.1', CATCHWORD_DB: store.path };
  for (const [name, url] of Object.entries(sinks)) {
    env[`CATCHWORD_SINK_${name.toUpperCase()}`] = url;
    if (url.startsWith('s3:')) env[`CATCHWORD_SINK_${name.toUpperCase()}_SECRET`] = `${S3_KEY.id}:${S3_KEY.secret}`;
  }
  if (mode === 'live') {
    // Known from the beginning, and behind by the whole log.
    for (const [name, url] of Object.entries(sinks)) {
      const config = sinkConfig({ env: 'SINK', name, url, secret: undefined });
      writeUnder(store.relayLease, Date.now(), (writer) => writer.sinks.configure(config));
      const sink = store.sinks.get(name);
      if (sink !== undefined) store.request((writer) => writer.sinks.replay(sink, 0));
    }
  }
  const child = spawn(process.execPath, [CLI, 'relay'], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  await once(child.stderr, 'data');
  const last = store.changes.lastSeq();
  let peak = 0;
  const waited = names.filter((name) => name !== dead);
  const ms = await timed(async () => {
    while (!waited.every((name) => store.sinks.get(name)?.cursor === last)) {
      peak = Math.max(peak, peakBytes(child.pid ?? 0));
      await delay(20);
    }
  });
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  await ended;
  return { ms, peak };
}

interface Kind {
  readonly name: string;
  /** The most events in one batch, as in the sink. */
  readonly batch: number;
  /** Returns the address of an empty store. */
  fresh(): Promise<string>;
  /** Feeds an empty store with a bare loop. @returns milliseconds */
  floor(chunks: readonly Chunk[]): Promise<number>;
  /** The same, but each batch is noted on the disk before the next one. Absent if the store itself knows what it has. */
  notedFloor?(chunks: readonly Chunk[]): Promise<number>;
}

function jsonl(directory: string): Kind {
  let files = 0;
  return {
    name: 'jsonl',
    batch: 10_000,
    fresh: async () => `jsonl:${join(directory, `${++files}.jsonl`)}`,
    floor: async (chunks) => {
      const bytes = chunks.map((chunk) => Buffer.from(`${chunk.map(({ text }) => text).join('\n')}\n`));
      return await timed(() => {
        const file = openSync(join(directory, 'floor'), 'w');
        for (const piece of bytes) {
          writeSync(file, piece);
          fdatasyncSync(file);
        }
        closeSync(file);
      });
    },
  };
}

/** @returns what notes a number on the disk, as a bare program would */
function createNote(path: string): (seq: number) => void {
  const db = new BetterSqlite(path);
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE IF NOT EXISTS cursor (seq)');
  db.exec('DELETE FROM cursor; INSERT INTO cursor VALUES (0)');
  const note = db.prepare('UPDATE cursor SET seq = ?');
  return (seq) => void note.run(seq);
}

function webhook(port: number, batch: number, directory: string): Kind {
  async function post(chunks: readonly Chunk[], note: (seq: number) => void): Promise<number> {
    const bodies = chunks.map((chunk) => ({
      body: `[${chunk.map(({ text }) => text).join(',')}]`,
      last: chunk.at(-1)?.seq ?? 0,
    }));
    const pool = new Pool(`http://127.0.0.1:${port}`, { connections: 1 });
    const ms = await timed(async () => {
      for (const { body, last } of bodies) {
        const response = await pool.request({ method: 'POST', path: '/hook', body });
        await response.body.dump();
        note(last);
      }
    });
    await pool.close();
    return ms;
  }

  return {
    name: 'webhook',
    batch,
    fresh: async () => `webhook+http://127.0.0.1:${port}/hook${Math.random()}#allow=private&batch=${batch}`,
    floor: async (chunks) => await post(chunks, () => {}),
    notedFloor: async (chunks) => await post(chunks, createNote(join(directory, 'cursor.db'))),
  };
}

function postgres(port: number, directory: string): Kind {
  const address = `postgres://postgres@127.0.0.1:${port}/postgres`;
  let tables = 0;
  return {
    name: 'postgres',
    batch: 10_000,
    fresh: async () => {
      await checkpoint(address);
      return `${address}?table=t${++tables}_${process.pid}`;
    },
    floor: async (chunks) => await timed(await prepareCopy(address, directory, chunks)),
  };
}

function mysql(port: number): Kind {
  let tables = 0;
  return {
    name: 'mysql',
    batch: 5_000,
    fresh: async () => `mysql://root@127.0.0.1:${port}/shop?table=t${++tables}_${process.pid}`,
    floor: async (chunks) => {
      const { feed, end } = await prepareBatches(port, chunks);
      const ms = await timed(feed);
      await end();
      return ms;
    },
  };
}

function redis(port: number): Kind {
  let streams = 0;
  return {
    name: 'redis',
    batch: 1_000,
    fresh: async () => `redis://127.0.0.1:${port}?stream=s${++streams}`,
    floor: async (chunks) => {
      const client = new Redis(port, '127.0.0.1');
      const ms = await timed(async () => {
        for (const chunk of chunks) {
          const pipeline = client.pipeline();
          for (const { text, seq } of chunk) pipeline.xadd('floor', `1-${seq}`, 'event', text);
          await pipeline.exec();
        }
      });
      await client.flushall();
      client.disconnect();
      return ms;
    },
  };
}

function nats(port: number): Kind {
  let subjects = 0;
  return {
    name: 'nats',
    batch: 500,
    fresh: async () => `nats://127.0.0.1:${port}?subject=s${++subjects}`,
    floor: async (chunks) => {
      const connection = await connectNats({ servers: `127.0.0.1:${port}` });
      const { streams } = await jetstreamManager(connection);
      await streams.add({ name: 'floor', subjects: ['floor'] });
      const js = jetstream(connection);
      const ms = await timed(async () => {
        for (const chunk of chunks) await Promise.all(chunk.map(({ text }) => js.publish('floor', text)));
      });
      await streams.delete('floor');
      await connection.close();
      return ms;
    },
  };
}

function s3({ port, objects }: FakeS3): Kind {
  let prefixes = 0;
  return {
    name: 's3',
    batch: 10_000,
    fresh: async () => {
      objects.clear();
      return `s3://books/${++prefixes}?endpoint=http://127.0.0.1:${port}&region=${S3_KEY.region}&every=0s`;
    },
    // The store does not count: in this process, it would share its time with the loop.
    floor: async (chunks) =>
      await timed(() => {
        for (const chunk of chunks) {
          FORMATS.parquet.encode(
            chunk.map((one) => ({ ...one, generation: 1, op: 'created', at: 0, id: `${one.seq}` })),
          );
        }
      }),
  };
}

const MODES = ['backfill', 'live'] as const;

interface Result {
  readonly floorMs: number;
  /** NaN for a sink that needs no note. */
  readonly notedMs: number;
  readonly backfill: Fed;
  readonly live: Fed;
}

async function measureKind(store: Store, kind: Kind, round: number): Promise<Result> {
  const chunks = await chunksOf(store, kind.batch);
  const floorMs = await kind.floor(chunks);
  const notedMs = (await kind.notedFloor?.(chunks)) ?? Number.NaN;
  const fed = async (mode: (typeof MODES)[number]): Promise<Fed> =>
    await feed(store, { [`${kind.name}_${kind.batch}_${mode}_${round}`]: await kind.fresh() }, mode);
  return { floorMs, notedMs, backfill: await fed('backfill'), live: await fed('live') };
}

async function measure(directory: string): Promise<void> {
  const receiver = fork(fileURLToPath(import.meta.url), { env: { ...process.env, BENCH_RECEIVE: '1' } });
  const [hookPort] = (await once(receiver, 'message')) as [number];
  const [postgresServer, redisServer, natsServer] = [await startPostgres(IDLE), await startRedis(), await startNats()];
  const bucket = await startS3();
  const mariadb = await startMariadb();
  const db = join(directory, 'catalog.db');
  await fill(db);
  const store = openStore(db);
  const kinds = [
    jsonl(directory),
    postgres(postgresServer.port, directory),
    redis(redisServer.port),
    nats(natsServer.port),
    webhook(hookPort, 100, directory),
    webhook(hookPort, 1_000, directory),
    s3(bucket),
    mysql(mariadb.port),
  ].filter(({ name }) => flags.only === undefined || name === flags.only);
  try {
    const rounds: Result[][] = [];
    for (let round = 0; round < Number(flags.runs); round++) {
      const results: Result[] = [];
      for (const kind of kinds) results.push(await measureKind(store, kind, round));
      rounds.push(results);
    }
    const rows = kinds.flatMap(({ name, batch }, index) =>
      MODES.map((mode) => {
        const of = (pick: (result: Result) => number): number =>
          median(rounds.map((results) => pick(results[index] as Result)));
        const noted = of((result) => result.notedMs);
        const ms = of((result) => result[mode].ms);
        return [
          name,
          batch,
          mode,
          (of(({ floorMs }) => floorMs) / 1e3).toFixed(2),
          (ms / 1e3).toFixed(2),
          of((result) => result[mode].ms / result.floorMs).toFixed(2),
          Number.isNaN(noted) ? '–' : (noted / 1e3).toFixed(2),
          Number.isNaN(noted) ? '–' : of((result) => result[mode].ms / result.notedMs).toFixed(2),
          Math.round(records / (ms / 1e3)),
          (of((result) => result[mode].peak) / 1e6).toFixed(0),
        ];
      }),
    );
    print(`\n${records} records, medians of ${flags.runs} runs, Node.js ${process.version}`);
    const floors = ['floor s', 'seconds', 'to floor', 'noted s', 'to noted'];
    print(table(['sink', 'batch', '', ...floors, 'records/s', 'peak MB'], rows));
    for (const count of [1, 5, 20]) {
      const chosen = Array.from({ length: count }, (_, index) => index % kinds.length);
      const urls = await Promise.all(chosen.map((index) => (kinds[index] as Kind).fresh()));
      const sinks = Object.fromEntries(urls.map((url, index) => [`many${count}x${index}`, url]));
      const { ms, peak } = await feed(store, sinks, 'backfill');
      const floors = chosen.map((index) => median(rounds.map((results) => (results[index] as Result).floorMs)));
      const floorMs = floors.reduce((sum, one) => sum + one, 0);
      const figures = `${(ms / 1e3).toFixed(2)} s, ${(ms / floorMs).toFixed(2)} of their floors one after another`;
      print(`${count} sinks at once: ${figures}, peak ${(peak / 1e6).toFixed(0)} MB`);
    }
    if (flags.only !== undefined) return;
    const four = async (): Promise<Sinks> => {
      const urls = await Promise.all(kinds.slice(0, 4).map((kind) => kind.fresh()));
      return Object.fromEntries(urls.map((url, index) => [`sink${index}`, url]));
    };
    const without = await feed(store, await four(), 'backfill');
    // Accepts connections but never responds.
    const silent = createServer(() => {}).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const address = silent.address();
    const port = typeof address === 'object' ? address?.port : 0;
    const dead = `webhook+http://127.0.0.1:${port}/#allow=private&timeout=1`;
    const withDead = await feed(store, { ...(await four()), dead }, 'backfill', 'dead');
    silent.closeAllConnections();
    silent.close();
    print(`four sinks together: ${(without.ms / 1000).toFixed(2)} s, peak ${(without.peak / 1e6).toFixed(0)} MB`);
    print(`the same with a fifth that never responds: ${(withDead.ms / 1000).toFixed(2)} s`);
  } finally {
    store.close();
    receiver.disconnect();
    const servers = [postgresServer, redisServer, natsServer, mariadb, bucket];
    await Promise.all(servers.map((server) => server.stop()));
  }
}

await (process.env.BENCH_RECEIVE === '1' ? receive() : inDirectory(measure));
