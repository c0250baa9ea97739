import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { FAST_DIRECTORY } from '@catchword/testing/fast-directory';
import { connectMariadb } from '@catchword/testing/mariadb';
import { PATIENT } from '@catchword/testing/nats';
import { startProxy, type TcpProxy } from '@catchword/testing/proxy';
import { type FakeS3, S3_KEY } from '@catchword/testing/s3';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect as connectNats } from '@nats-io/transport-node';
import { Redis } from 'ioredis';
import pg from 'pg';
import { Webhook } from 'standardwebhooks';
import type { Received, SinkTarget } from '../../src/contract/checks.ts';
import { readBucket } from '../support/s3-reader.ts';

/** The parts of an event that the checks use. */
export interface Event {
  readonly id: string;
  readonly sequence: string;
  readonly subject: string;
  readonly data: { readonly product: unknown };
}

export function receivedFrom(events: readonly Event[]): Received & { readonly events: readonly Event[] } {
  const products = new Map<string, unknown>();
  const newest = new Map<string, number>();
  for (const { sequence, subject, data } of events) {
    // A reader ignores events older than what it has.
    if (Number(sequence) < (newest.get(subject) ?? 0)) continue;
    newest.set(subject, Number(sequence));
    if (data.product === null) products.delete(subject);
    else products.set(subject, data.product);
  }
  return { seqs: events.map(({ sequence }) => Number(sequence)), products, events };
}

/** Reads the events of a file and of its rotated files. */
export function eventsOf(directory: string): Event[] {
  const all = readdirSync(directory).filter((file) => /\.jsonl(\.gz)?$/.test(file));
  // A rotated file exists twice until the plain one is removed.
  const files = all.filter((file) => !all.includes(`${file}.gz`));
  // By time, because the numbers in the names restart after a replay and after a change of view.
  const timeOf = (file: string): number => Math.trunc(statSync(join(directory, file)).mtimeMs);
  return files
    .sort((a, b) => timeOf(a) - timeOf(b))
    .flatMap((file) => {
      const bytes = readFileSync(join(directory, file));
      const text = (file.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8');
      const lines = text.split('\n');
      if (lines.pop() !== '') throw new Error(`${file} ends within a line`);
      return lines.map((line) => JSON.parse(line) as Event);
    });
}

/** A store in a directory, which is unreachable while a file is in its place. */
function directoryTarget() {
  const root = mkdtempSync(join(FAST_DIRECTORY, 'catchword-target-'));
  const directory = join(root, 'out');
  return {
    directory,
    interrupt: async () => {
      renameSync(directory, `${directory}.away`);
      writeFileSync(directory, 'in the way');
    },
    restore: async () => {
      rmSync(directory);
      renameSync(`${directory}.away`, directory);
    },
    remove: async () => rmSync(root, { recursive: true, force: true }),
  };
}

export async function jsonlTarget(options = '') {
  const target = directoryTarget();
  const file = join(target.directory, 'changes.jsonl');
  return {
    ...target,
    file,
    url: `jsonl:${file}${options}`,
    read: async () => receivedFrom(eventsOf(target.directory)),
    /** Truncates the file after `count` lines. */
    keepLines: (count: number): void => {
      const lines = readFileSync(file, 'utf8').split('\n').slice(0, count);
      writeFileSync(file, `${lines.join('\n')}\n`);
    },
  };
}

const EXAMPLE = fileURLToPath(new URL('../../examples/files-sink.mjs', import.meta.url));

/** The sink of the documentation: one file per product. */
export async function filesTarget(): Promise<SinkTarget & { readonly directory: string }> {
  const target = directoryTarget();
  const { directory } = target;
  return {
    ...target,
    url: `module:${EXAMPLE}?directory=${encodeURIComponent(directory)}`,
    read: async () => {
      const files = readdirSync(directory);
      const bodies = files.map((file) => JSON.parse(readFileSync(join(directory, file), 'utf8')) as { vbid: string });
      return { seqs: null, products: new Map(bodies.map((body) => [body.vbid, body])) };
    },
  };
}

const SECRET = 'whsec_c2VjcmV0IG9mIHRoZSB0ZXN0cywgMzIgYnl0ZXM=';

/** Chooses the response of a receiver; the default is 204. */
export type Reply = (
  number: number,
  batch: readonly Event[],
) => { readonly status: number; readonly headers?: Record<string, string> };

/** A store behind a proxy. */
export interface ProxiedTarget extends SinkTarget, Pick<TcpProxy, 'mute' | 'hold' | 'forget'> {}

const behind = ({ cut, restore, mute, hold, forget }: TcpProxy) => ({ interrupt: cut, restore, mute, hold, forget });

export interface WebhookTarget extends ProxiedTarget {
  readonly events: readonly Event[];
  /** Times of all requests, `webhook-id` of each. */
  readonly requests: readonly { readonly at: number; readonly id: string }[];
}

/** Starts a receiver that verifies signatures and keeps accepted events. */
export async function webhookTarget(reply: Reply = () => ({ status: 204 }), options = ''): Promise<WebhookTarget> {
  const events: Event[] = [];
  const requests: { at: number; id: string }[] = [];
  const webhook = new Webhook(SECRET);
  const receive = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    let body = '';
    for await (const piece of request.setEncoding('utf8')) body += piece;
    if (request.method === 'OPTIONS') {
      response.writeHead(204).end();
      return;
    }
    requests.push({ at: Date.now(), id: String(request.headers['webhook-id']) });
    const batch = webhook.verify(body, request.headers as Record<string, string>) as Event[];
    const { status, headers } = reply(requests.length, batch);
    if (status < 300) events.push(...batch);
    response.writeHead(status, headers).end();
  };
  const server = createServer((request, response) => void receive(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const proxy = await startProxy(address.port);
  return {
    events,
    requests,
    url: `webhook+http://127.0.0.1:${proxy.port}/hook?key=of+the+receiver#allow=private${options}`,
    secret: SECRET,
    read: async () => receivedFrom(events),
    ...behind(proxy),
    remove: async () => {
      server.closeAllConnections();
      server.close();
      await proxy.cut();
    },
  };
}

let names = 0;

/** Returns a name that is unique in this process. */
function uniqueName(): string {
  return `t${process.pid}_${++names}`;
}

export async function postgresTarget(
  port: number,
  options = '',
): Promise<ProxiedTarget & Pick<TcpProxy, 'bytes'> & { readonly table: string }> {
  const proxy = await startProxy(port);
  const table = uniqueName();
  const client = new pg.Client({ connectionString: `postgres://postgres@127.0.0.1:${port}/postgres` });
  await client.connect();
  return {
    table,
    url: `postgres://postgres@127.0.0.1:${proxy.port}/postgres?table=${table}${options}`,
    read: async () => {
      const text = `SELECT vbid, body FROM ${table} WHERE removed_at IS NULL`;
      const { rows } = await client.query<{ vbid: string; body: unknown }>(text);
      return { seqs: null, products: new Map(rows.map(({ vbid, body }) => [vbid, body])) };
    },
    ...behind(proxy),
    bytes: proxy.bytes,
    remove: async () => {
      await proxy.cut();
      await client.query(`DROP TABLE IF EXISTS ${table}`);
      await client.end();
    },
  };
}

export async function mysqlTarget(
  port: number,
  options = '',
): Promise<ProxiedTarget & Pick<TcpProxy, 'bytes'> & { readonly table: string }> {
  const proxy = await startProxy(port);
  const table = uniqueName();
  const client = await connectMariadb(port, { autoJsonMap: false });
  return {
    table,
    url: `mysql://root@127.0.0.1:${proxy.port}/shop?table=${table}${options}`,
    read: async () => {
      const text = `SELECT vbid, body FROM ${table} WHERE removed_at IS NULL`;
      const rows = await client.query<{ vbid: string; body: string }[]>(text);
      return { seqs: null, products: new Map(rows.map(({ vbid, body }) => [vbid, JSON.parse(body) as unknown])) };
    },
    ...behind(proxy),
    bytes: proxy.bytes,
    remove: async () => {
      await proxy.cut();
      await client.query(`DROP TABLE IF EXISTS ${table}`);
      await client.end();
    },
  };
}

export async function redisTarget(port: number, options = ''): Promise<ProxiedTarget & { readonly stream: string }> {
  const proxy = await startProxy(port);
  const stream = uniqueName();
  const redis = new Redis(port, '127.0.0.1');
  return {
    stream,
    url: `redis://127.0.0.1:${proxy.port}?stream=${stream}${options}`,
    read: async () => {
      const entries = await redis.xrange(stream, '-', '+');
      return receivedFrom(entries.map(([, fields]) => JSON.parse(String(fields[1])) as Event));
    },
    ...behind(proxy),
    remove: async () => {
      await proxy.cut();
      redis.disconnect();
    },
  };
}

/** The products that are keys of Redis. */
export async function redisKeysTarget(port: number): Promise<ProxiedTarget & { readonly prefix: string }> {
  const proxy = await startProxy(port);
  const prefix = uniqueName();
  const redis = new Redis(port, '127.0.0.1');
  return {
    prefix,
    url: `redis://127.0.0.1:${proxy.port}?keys=${prefix}`,
    read: async () => {
      const keys = (await redis.keys(`${prefix}:*`)).filter((key) => !/:(\t.*)?$/.test(key));
      const texts = keys.length === 0 ? [] : await redis.mget(keys);
      // A key may be removed between the two commands.
      const products = keys.flatMap((key, at) => {
        const text = texts[at] ?? null;
        return text === null ? [] : [[key.slice(prefix.length + 1), JSON.parse(text) as unknown] as const];
      });
      return { seqs: null, products: new Map(products) };
    },
    ...behind(proxy),
    remove: async () => {
      await proxy.cut();
      redis.disconnect();
    },
  };
}

export async function natsTarget(port: number): Promise<ProxiedTarget & { readonly stream: string }> {
  const proxy = await startProxy(port);
  const stream = uniqueName();
  return {
    stream,
    url: `nats://127.0.0.1:${proxy.port}?subject=${stream}.products&stream=${stream}`,
    read: async () => {
      const connection = await connectNats({ servers: `127.0.0.1:${port}` });
      const manager = await jetstreamManager(connection, PATIENT);
      const { state } = await manager.streams.info(stream);
      const events: Event[] = [];
      for (let seq = Math.max(1, state.first_seq); seq <= state.last_seq; seq++) {
        const message = await manager.streams.getMessage(stream, { seq });
        if (message !== null) events.push(message.json<Event>());
      }
      await connection.close();
      return receivedFrom(events);
    },
    ...behind(proxy),
    remove: proxy.cut,
  };
}

export interface S3Target extends ProxiedTarget {
  /** `BUCKET/PREFIX/`, as the keys of the store's objects begin. */
  readonly prefix: string;
}

/** A prefix of a bucket. @param rowsAt reads the rows of the present products */
export async function bucketTarget(
  port: number,
  region: string,
  secret: string,
  rowsAt: (prefix: string) => ReturnType<typeof readBucket>,
  options = '',
): Promise<S3Target> {
  const proxy = await startProxy(port);
  const prefix = `books/${uniqueName()}/`;
  const every = options.includes('every=') ? '' : '&every=0s';
  return {
    prefix,
    url: `s3://${prefix.slice(0, -1)}?endpoint=http://127.0.0.1:${proxy.port}&region=${region}${every}${options}`,
    secret,
    read: async () => {
      const rows = await rowsAt(prefix);
      return { seqs: null, products: new Map(rows.map(({ vbid, body }) => [vbid, JSON.parse(body) as unknown])) };
    },
    ...behind(proxy),
    remove: proxy.cut,
  };
}

export function s3Target({ port, objects }: Pick<FakeS3, 'port' | 'objects'>, options = ''): Promise<S3Target> {
  const { id, secret, region } = S3_KEY;
  return bucketTarget(port, region, `${id}:${secret}`, (prefix) => readBucket(objects, prefix), options);
}

/** Returns the text of a key of a bucket as docs/stores/nats.md says how to. */
export function decodedKey(key: string): string {
  return Buffer.from(
    key.replace(/=(..)/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16))),
    'latin1',
  ).toString('utf8');
}

/** The products that a bucket has, read message by message. */
export async function natsBucketTarget(port: number): Promise<ProxiedTarget & { readonly bucket: string }> {
  const proxy = await startProxy(port);
  const bucket = uniqueName();
  return {
    bucket,
    url: `nats://127.0.0.1:${proxy.port}?kv=${bucket}`,
    read: async () => {
      const connection = await connectNats({ servers: `127.0.0.1:${port}` });
      const { streams } = await jetstreamManager(connection, PATIENT);
      const { state } = await streams.info(`KV_${bucket}`);
      const products = new Map<string, unknown>();
      for (let seq = Math.max(1, state.first_seq); seq <= state.last_seq; seq++) {
        const message = await streams.getMessage(`KV_${bucket}`, { seq });
        if (message === null || message.header.get('KV-Operation') === 'DEL') continue;
        products.set(decodedKey(message.subject.slice(`$KV.${bucket}.`.length)), message.json());
      }
      await connection.close();
      return { seqs: null, products };
    },
    ...behind(proxy),
    remove: proxy.cut,
  };
}
