import { Redis } from 'ioredis';
import { z } from 'zod';
import { messageOf, systemCodeOf } from '../../errors.ts';
import { type Mark, type Sink, SinkError, type SinkEvent, type SinkFactory } from '../sink.ts';
import { decoded, readOptions, sizeText, wholeOption } from '../sink-options.ts';
import { isSameMark, markAtStart, markSchema } from '../stored-mark.ts';
import { sinkErrorsBy } from './sink-errors.ts';

/**
 * A stream with one entry per event, in the field `event`. Entry ids are `<generation>-<seq>`: they only grow, so Redis
 * itself rejects an entry that it already has. The mark is in the hash `{<stream>}:catchword`, written in the same
 * transaction: effectively once.
 */

const OPTIONS = {
  stream: z.string().min(1, 'a name').default('catalog'),
  /** About this many entries are kept. */
  maxlen: wholeOption(1, Number.MAX_SAFE_INTEGER).optional(),
};

const COMMAND_TIMEOUT_MS = 30_000;
const CONNECT_TIMEOUT_MS = 10_000;

const orSinkError = sinkErrorsBy((error) => {
  const message = messageOf(error) || systemCodeOf(error) || 'no answer';
  const isSetting = /^(NOAUTH|WRONGPASS|NOPERM|WRONGTYPE|ERR unknown command|ERR DB index)/.test(message);
  return new SinkError(isSetting ? 'misconfigured' : 'unavailable', `Redis: ${message}`, { cause: error });
});

async function connect(url: URL): Promise<Redis> {
  let reason: unknown;
  const connecting = new Redis({
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: Number(url.port || '6379'),
    ...(url.username !== '' && { username: decoded(url.username) }),
    ...(url.password !== '' && { password: decoded(url.password) }),
    ...(url.protocol === 'rediss:' && { tls: { servername: url.hostname } }),
    lazyConnect: true,
    // The relay reconnects.
    retryStrategy: null,
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    connectTimeout: CONNECT_TIMEOUT_MS,
    commandTimeout: COMMAND_TIMEOUT_MS,
  });
  connecting.on('error', (error) => {
    reason ??= error;
  });
  try {
    await connecting.connect();
    // The driver's option `db` would hide the error for a database that does not exist, and use database 0.
    await connecting.select(Number(url.pathname.slice(1) || '0'));
    return connecting;
  } catch (error) {
    connecting.disconnect();
    throw reason ?? error;
  }
}

/** Runs `work` on a connection of its own. */
async function probe<T>(url: URL, work: (db: Redis) => Promise<T>): Promise<T> {
  const db = await connect(url);
  try {
    return await work(db);
  } finally {
    db.disconnect();
  }
}

async function streamInfo(db: Redis, stream: string, field: string): Promise<unknown> {
  const info = (await db.xinfo('STREAM', stream)) as unknown[];
  return info[info.indexOf(field) + 1];
}

async function readMark(db: Redis, markKey: string): Promise<Mark | null> {
  const found = await db.hgetall(markKey);
  return Object.keys(found).length === 0 ? null : markSchema.parse(found);
}

/** Queues commands and discards them: Redis checks rights, memory and role when a command is queued. */
async function tryToAppend(db: Redis, stream: string, markKey: string): Promise<void> {
  await db.watch(markKey, stream);
  await db.multi({ pipeline: false });
  try {
    await db.xadd(stream, '*', 'event', '');
    await db.hset(markKey, 'cursor', '0');
  } finally {
    await db.discard();
  }
}

export const createRedisSink: SinkFactory = ({ url }): Sink => {
  const { stream, maxlen } = readOptions(url, OPTIONS);
  const markKey = `{${stream}}:catchword`;
  let redis: Redis | undefined;
  /** The mark in Redis, as this process left it. */
  let written: Mark | null = null;
  /** Whether the stream exists, as this process left it. */
  let exists = false;

  function connected(): Redis {
    if (redis === undefined) throw new SinkError('unavailable', 'Redis: not connected');
    return redis;
  }

  function streamIsGone(): SinkError {
    return new SinkError('unavailable', `Redis: another client has deleted stream ${stream}`);
  }

  /** Rejects a stream with entries of others, because ids must grow. */
  async function rejectForeignEntries(db: Redis, generation: number, cursor: number): Promise<void> {
    if ((await db.exists(stream)) === 0) {
      if (exists) throw streamIsGone();
      return;
    }
    const lastId = String(await streamInfo(db, stream, 'last-generated-id'));
    const [major = 0, minor = 0] = lastId.split('-').map(Number);
    if (major < generation || (major === generation && minor <= cursor)) return;
    const message = `Redis: this sink did not write entry ${lastId} of stream ${stream}. Use another one: stream=NAME`;
    throw new SinkError('misconfigured', message);
  }

  async function rejectForeignMark(db: Redis): Promise<void> {
    if (isSameMark(await readMark(db, markKey), written)) return;
    throw new SinkError('unavailable', `Redis: another process changed the cursor in ${markKey}`);
  }

  /** Appends all events, or none if another client touches the stream or the mark meanwhile. */
  async function append(db: Redis, events: readonly SinkEvent[], mark: Mark): Promise<void> {
    const trim = maxlen === undefined ? [] : ['MAXLEN', '~', maxlen];
    await db.watch(markKey, stream);
    await rejectForeignMark(db);
    await rejectForeignEntries(db, mark.generation, (events[0]?.seq ?? 0) - 1);
    const transaction = db.multi();
    for (const { seq, text } of events) transaction.xadd(stream, ...trim, `${mark.generation}-${seq}`, 'event', text);
    transaction.hset(markKey, { ...mark });
    const results = await transaction.exec();
    if (results === null) throw new SinkError('unavailable', `Redis: another client writes to stream ${stream}`);
    const failed = results.find(([error]) => error !== null);
    if (failed !== undefined) throw failed[0];
    written = mark;
    exists = true;
  }

  return {
    batch: { events: 1_000, chars: 2_000_000 },
    open: (mark) =>
      orSinkError(async () => {
        redis = await connect(url);
        written = await readMark(redis, markKey);
        exists = (await redis.exists(stream)) > 0;
        // Without the stream, nothing that was confirmed is left.
        return exists ? written : markAtStart(mark);
      }),
    deliver: (events, mark) => orSinkError(() => append(connected(), events, mark)),
    recheck: () =>
      orSinkError(async () => {
        const db = connected();
        if (exists && (await db.exists(stream)) === 0) throw streamIsGone();
        await rejectForeignMark(db);
      }),
    size: () =>
      orSinkError(() =>
        probe(url, async (db) => {
          const entries = await db.xlen(stream);
          const bytes = await db.memory('USAGE', stream);
          const limit = maxlen === undefined ? null : `maxlen=${maxlen}`;
          return { text: `${entries} entries, ${sizeText(bytes ?? 0)}`, limit, option: 'maxlen=N' };
        }),
      ),
    close: async () => {
      redis?.disconnect();
      redis = undefined;
    },
    check: () =>
      orSinkError(() =>
        probe(url, async (db) => {
          const mark = await readMark(db, markKey);
          // Without a mark, all entries are foreign.
          await rejectForeignEntries(db, mark?.generation ?? 1, mark?.cursor ?? 0);
          await tryToAppend(db, stream, markKey);
          // Not XLEN: delivery does not need the right to it.
          const entries = (await db.exists(stream)) === 0 ? 0 : Number(await streamInfo(db, stream, 'length'));
          const text = entries === 1 ? '1 entry' : `${entries} entries`;
          return `stream ${stream} can be written (nothing was); it has ${text}`;
        }),
      ),
  };
};
