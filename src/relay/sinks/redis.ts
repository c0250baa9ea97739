import { Redis } from 'ioredis';
import { z } from 'zod';
import { messageOf, systemCodeOf } from '../../errors.ts';
import { isSameMark, markSchema } from '../mark.ts';
import { type Mark, type Sink, SinkError, type SinkEvent, type SinkFactory } from '../sink.ts';
import { decoded, readOptions, sizeText, wholeOption } from '../sink-options.ts';

/**
 * A stream with one entry an event, in the field `event`. An entry's id is `<generation>-<seq>`: it only ever grows, so
 * Redis itself refuses an entry that is there already. How far the stream is stands in the hash `{<stream>}:catchword`,
 * written in the same transaction: effectively once.
 */

const OPTIONS = {
  stream: z.string().min(1).default('catalog'),
  /** About so many entries are kept. */
  maxlen: wholeOption(1, Number.MAX_SAFE_INTEGER).optional(),
};

const COMMAND_TIMEOUT_MS = 30_000;
const CONNECT_TIMEOUT_MS = 10_000;

function failure(error: unknown): SinkError {
  if (error instanceof SinkError) return error;
  const message = messageOf(error) || systemCodeOf(error) || 'no answer';
  const isSetting = /^(NOAUTH|WRONGPASS|NOPERM|WRONGTYPE|ERR unknown command|ERR DB index)/.test(message);
  return new SinkError(isSetting ? 'misconfigured' : 'unavailable', `Redis: ${message}`, { cause: error });
}

export const createRedisSink: SinkFactory = ({ url }): Sink => {
  const { stream, maxlen } = readOptions(url, OPTIONS);
  const fence = `{${stream}}:catchword`;
  const address = url;
  let redis: Redis | undefined;
  /** What the fence is, as this process left it. */
  let written: Mark | null = null;
  /** Whether the stream is there, as this process left it. */
  let isThere = false;

  async function connect(): Promise<Redis> {
    let reason: unknown;
    const connecting = new Redis({
      host: address.hostname.replace(/^\[|\]$/g, ''),
      port: Number(address.port || '6379'),
      ...(address.username !== '' && { username: decoded(address.username) }),
      ...(address.password !== '' && { password: decoded(address.password) }),
      ...(address.protocol === 'rediss:' && { tls: { servername: address.hostname } }),
      lazyConnect: true,
      // The relay waits and opens anew, as with every sink.
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
      // As an option, it would be tried in the background, and a number that does not exist would be database 0.
      await connecting.select(Number(address.pathname.slice(1) || '0'));
      return connecting;
    } catch (error) {
      connecting.disconnect();
      throw failure(reason ?? error);
    }
  }

  async function readFence(db: Redis): Promise<Mark | null> {
    const found = await db.hgetall(fence);
    return Object.keys(found).length === 0 ? null : markSchema.parse(found);
  }

  /** Entries must grow: of a stream that others write to, nothing is promised. */
  async function refuseOthers(db: Redis, generation: number, cursor: number): Promise<void> {
    if ((await db.exists(stream)) === 0) {
      if (isThere) throw new SinkError('unavailable', `Redis: somebody else has removed stream ${stream}`);
      return;
    }
    const info = (await db.xinfo('STREAM', stream)) as unknown[];
    const lastId = String(info[info.indexOf('last-generated-id') + 1]);
    const [major = 0, minor = 0] = lastId.split('-').map(Number);
    if (major < generation || (major === generation && minor <= cursor)) return;
    throw new SinkError('misconfigured', `Redis: stream ${stream} has entry ${lastId}, which is not of this sink`);
  }

  /** Nothing of it happens where somebody else has touched the stream meanwhile. */
  async function append(db: Redis, events: readonly SinkEvent[], mark: Mark): Promise<void> {
    const trim = maxlen === undefined ? [] : ['MAXLEN', '~', maxlen];
    await db.watch(fence, stream);
    if (!isSameMark(await readFence(db), written)) {
      throw new SinkError('unavailable', `Redis: somebody else moved the fence of ${stream}`);
    }
    await refuseOthers(db, mark.generation, (events[0]?.seq ?? 0) - 1);
    const transaction = db.multi();
    for (const { seq, text } of events) transaction.xadd(stream, ...trim, `${mark.generation}-${seq}`, 'event', text);
    transaction.hset(fence, { ...mark });
    const results = await transaction.exec();
    const failed = results?.find(([error]) => error !== null);
    if (results === null || failed !== undefined) throw failed?.[0] ?? new Error('somebody else writes to the stream');
    written = mark;
    isThere = true;
  }

  /** By a command that delivery needs, too: a user may have the right to no others. */
  async function lengthOf(db: Redis): Promise<number> {
    if ((await db.exists(stream)) === 0) return 0;
    const info = (await db.xinfo('STREAM', stream)) as unknown[];
    return Number(info[info.indexOf('length') + 1]);
  }

  /** Redis looks at rights, memory and role when a command is queued: queued and discarded, it changes nothing. */
  async function tryToAppend(db: Redis): Promise<void> {
    await db.watch(fence, stream);
    await db.multi({ pipeline: false });
    try {
      await db.xadd(stream, '*', 'event', '');
      await db.hset(fence, 'cursor', '0');
    } finally {
      await db.discard();
    }
  }

  return {
    batch: { events: 1_000, chars: 2_000_000 },
    open: async (mark) => {
      redis = await connect();
      try {
        written = await readFence(redis);
        // Without it, what was confirmed is not there any more, if it ever was.
        isThere = (await redis.exists(stream)) > 0;
        return isThere ? written : { ...mark, cursor: 0, at: 0, late: 0 };
      } catch (error) {
        throw failure(error);
      }
    },
    deliver: async (events, mark) => {
      if (redis === undefined) throw new SinkError('unavailable', 'Redis: not connected');
      try {
        await append(redis, events, mark);
      } catch (error) {
        throw failure(error);
      }
    },
    recheck: async () => {
      if (redis === undefined) throw new SinkError('unavailable', 'Redis: not connected');
      try {
        const isLost = isThere && (await redis.exists(stream)) === 0;
        if (isLost) throw new SinkError('unavailable', `Redis: somebody else has removed stream ${stream}`);
        if (isSameMark(await readFence(redis), written)) return;
        throw new SinkError('unavailable', `Redis: somebody else moved the fence of ${stream}`);
      } catch (error) {
        throw failure(error);
      }
    },
    size: async () => {
      const probe = await connect();
      try {
        const entries = await probe.xlen(stream);
        const bytes = await probe.memory('USAGE', stream);
        const limit = maxlen === undefined ? null : `maxlen=${maxlen}`;
        return { text: `${entries} entries, ${sizeText(bytes ?? 0)}`, limit, option: 'maxlen=N' };
      } catch (error) {
        throw failure(error);
      } finally {
        probe.disconnect();
      }
    },
    close: async () => {
      redis?.disconnect();
      redis = undefined;
    },
    check: async () => {
      const probe = await connect();
      try {
        const fenced = await readFence(probe);
        // Entries without a fence are somebody else's: what is delivered must come after them.
        await refuseOthers(probe, fenced?.generation ?? 1, fenced?.cursor ?? 0);
        await tryToAppend(probe);
        const entries = await lengthOf(probe);
        return `stream ${stream} can be written (nothing was); it has ${entries} ${entries === 1 ? 'entry' : 'entries'}`;
      } catch (error) {
        throw failure(error);
      } finally {
        probe.disconnect();
      }
    },
  };
};
