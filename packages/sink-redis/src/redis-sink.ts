import { isBehindSentinels, SENTINEL_OPTIONS } from '@catchword/base/host-urls';
import { reasonOf } from '@catchword/base/redis-place';
import { createTextSink, type OpenStore } from '@catchword/sink-kit/connected-sink';
import { listFolded, trimmedError } from '@catchword/sink-kit/folded-events';
import { type EventLines, type Mark, SinkError, type SinkFactory } from '@catchword/sink-kit/sink';
import { excludeOptions, readOptions, sizeText } from '@catchword/sink-kit/sink-options';
import { markAtStart } from '@catchword/sink-kit/stored-mark';
import type { Redis } from 'ioredis';
import { createRedisKeysSink } from './redis-keys.ts';
import { redisKind } from './redis-kind.ts';
import { connect, movingMark, openMark, readMark, toSinkError, tryInVain } from './redis-sink-connection.ts';

/**
 * A stream with one entry per event, in the field `event`. Entry ids are `<generation>-<seq>`: they only grow, so Redis
 * itself rejects an entry that it already has. The mark is in the hash `{<stream>}:catchword`, written by the same script,
 * which Redis runs as a whole: effectively once.
 */

/** Entries that are read at once. */
const READ_STEP = 1_000;

/**
 * Appends events, or returns that the stream was deleted; Redis rejects an entry that is not newer than the last one. A
 * script, because a transaction with a command for each event takes several times as long.
 *
 * ARGV: the generation, the option maxlen, whether the stream must exist, lines.
 */
const APPEND = movingMark(`
local generation, maxlen, mustExist, lines = unpack(ARGV, 15)
if mustExist == 'yes' and redis.call('EXISTS', KEYS[2]) == 0 then return 'deleted' end
local start = 1
while start <= #lines do
  local stop = string.find(lines, '\\n', start, true)
  local text = string.sub(lines, start, stop - 1)
  local id = generation .. '-' .. string.match(text, '^{"specversion":"1.0","id":"[^"]*:(%d+)"')
  if maxlen == '' then
    redis.call('XADD', KEYS[2], id, 'event', text)
  else
    redis.call('XADD', KEYS[2], 'MAXLEN', '~', maxlen, id, 'event', text)
  end
  start = stop + 1
end`);

/** Reads the texts of all events, oldest first. @throws SinkError misconfigured if the stream was trimmed */
async function* eventsOf(db: Redis, stream: string): AsyncGenerator<readonly string[]> {
  if ((await db.exists(stream)) === 0) return;
  const [added, length] = [await streamInfo(db, stream, 'entries-added'), await streamInfo(db, stream, 'length')];
  if (added !== length) throw trimmedError(`stream ${stream}`);
  for (let after = '-'; ; ) {
    const entries = await db.xrange(stream, after, '+', 'COUNT', READ_STEP);
    const last = entries.at(-1);
    if (last === undefined) return;
    yield entries.map(([, [, text = '']]) => text);
    after = `(${last[0]}`;
  }
}

async function streamInfo(db: Redis, stream: string, field: string): Promise<unknown> {
  const info = (await db.xinfo('STREAM', stream)) as unknown[];
  return info[info.indexOf(field) + 1];
}

async function tryToAppend(db: Redis, stream: string, markKey: string): Promise<void> {
  await tryInVain(db, [markKey, stream], async () => {
    await db.xadd(stream, '*', 'event', '');
    await db.hset(markKey, 'cursor', '0');
    await db.eval(APPEND, 2, markKey, stream);
  });
}

export const createRedisSink: SinkFactory = (settings) => {
  const { url, hide } = settings;
  const { stream, maxlen, keys } = readOptions(url, redisKind.options, isBehindSentinels(url) ? SENTINEL_OPTIONS : []);
  if (keys !== undefined) {
    excludeOptions(url, 'keys', ['stream', 'maxlen']);
    return createRedisKeysSink(settings, keys);
  }
  const markKey = `{${stream}}:catchword`;

  function notOurs(id: string): SinkError {
    const message = `Redis: this sink did not write entry ${id} of stream ${stream}. Use another one: stream=NAME`;
    return new SinkError('misconfigured', message);
  }

  /** Rejects a stream without a mark if its last entry is not an event of catchword: MAXLEN would drop its entries. */
  async function rejectForeignStream(db: Redis): Promise<void> {
    const [last] = await db.xrevrange(stream, '+', '-', 'COUNT', 1);
    if (last === undefined) return;
    const [id, [field = '', text = '']] = last;
    if (field !== 'event' || !text.includes('"type":"catchword.')) throw notOurs(id);
  }

  const lastIdOf = async (db: Redis): Promise<string> => String(await streamInfo(db, stream, 'last-generated-id'));

  /** Rejects a stream with entries of others, because ids must grow. @returns whether the stream exists */
  async function rejectForeignEntries(db: Redis, generation: number, cursor: number): Promise<boolean> {
    if ((await db.exists(stream)) === 0) return false;
    const lastId = await lastIdOf(db);
    const [major = 0, minor = 0] = lastId.split('-').map(Number);
    if (major < generation || (major === generation && minor <= cursor)) return true;
    throw notOurs(lastId);
  }

  async function open(db: Redis, mark: Mark): Promise<OpenStore<EventLines>> {
    const { written, check, move } = await openMark(db, [markKey, stream]);
    /** Whether the stream exists, as this process left it. */
    let exists = (await db.exists(stream)) > 0;
    if (exists && written() === null) await rejectForeignStream(db);
    await tryToAppend(db, stream, markKey);

    const deletedStream = () => new SinkError('unavailable', `Redis: another client has deleted stream ${stream}`);

    return {
      // Without the stream, nothing that was confirmed is left.
      position: exists ? written() : markAtStart(mark),
      deliver: async ({ bytes }, mark) => {
        const lines = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
        const options = [mark.generation, maxlen ?? '', exists ? 'yes' : 'no', lines];
        const answer = await move(APPEND, mark, ...options).catch(async (error: unknown) => {
          throw /equal or smaller/.test(reasonOf(error)) ? notOurs(await lastIdOf(db)) : error;
        });
        if (answer === 'deleted') throw deletedStream();
        exists = true;
      },
      recheck: async () => {
        if (exists && (await db.exists(stream)) === 0) throw deletedStream();
        await check();
      },
      list: listFolded(settings.name, async function* () {
        await check();
        yield* eventsOf(db, stream);
      }),
    };
  }

  return createTextSink({
    hide,
    has: ['list'],
    batch: { events: 1_000, chars: 2_000_000 },
    connect: (life) => connect(settings, life),
    open,
    size: async (db) => {
      const entries = await db.xlen(stream);
      const bytes = await db.memory('USAGE', stream);
      const limit = maxlen === undefined ? null : `maxlen=${maxlen}`;
      return { text: `${entries} entries, ${sizeText(bytes ?? 0)}`, limit, option: 'maxlen=N' };
    },
    drop: async (db) => {
      await db.del(stream, markKey);
      return '';
    },
    check: async (db, _signal, found) => {
      const mark = await readMark(db, markKey);
      // Without a mark, all entries are foreign.
      const exists = await rejectForeignEntries(db, mark?.generation ?? 1, mark?.cursor ?? 0);
      if (exists) await (mark === null ? rejectForeignStream(db) : found?.(mark));
      await tryToAppend(db, stream, markKey);
      // Not XLEN: delivery does not need the right to it.
      const entries = exists ? Number(await streamInfo(db, stream, 'length')) : 0;
      const text = entries === 1 ? '1 entry' : `${entries} entries`;
      return `stream ${stream} can be written (nothing was); it has ${text}`;
    },
    toSinkError,
  });
};
