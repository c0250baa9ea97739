import type { Redis } from 'ioredis';
import * as z from 'zod';
import { isBehindSentinels, SENTINEL_OPTIONS } from '../../base/host-urls.ts';
import { decoded } from '../../base/percent-decode.ts';
import { reasonOf, redisPlace } from '../../base/redis-place.ts';
import { type EventLines, type Mark, SinkError, type SinkFactory } from '../sink.ts';
import { readOptions, sizeText, wholeOption } from '../sink-options.ts';
import { isSameMark, markAtStart, markSchema } from '../stored-mark.ts';
import { createTextSink, type OpenStore } from './connected-sink.ts';
import type { ConnectionLife } from './connection-scope.ts';

/**
 * A stream with one entry per event, in the field `event`. Entry ids are `<generation>-<seq>`: they only grow, so Redis
 * itself rejects an entry that it already has. The mark is in the hash `{<stream>}:catchword`, written by the same script,
 * which Redis runs as a whole: effectively once.
 */

const OPTIONS = {
  stream: z.string().min(1, 'a name').default('catalog'),
  /** About this many entries are kept. */
  maxlen: wholeOption(1, Number.MAX_SAFE_INTEGER).optional(),
};

/**
 * Appends events and stores the mark, or does neither and returns why: another process has moved the cursor, the stream was
 * deleted, or its last entry, which it returns, is not older. A script, because a transaction with a command for each event
 * takes several times as long.
 *
 * ARGV: the option maxlen, whether the stream must exist, the fence of the mark that must be there, lines, the new mark.
 */
const APPEND = `
local maxlen, mustExist, fence, lines = unpack(ARGV, 1, 4)
local mark, old, found = {}, {}, redis.call('HGETALL', KEYS[2])
for at = 5, #ARGV, 2 do mark[ARGV[at]] = ARGV[at + 1] end
for at = 1, #found, 2 do old[found[at]] = found[at + 1] end
local oldFence = ''
if #found > 0 then
  oldFence = table.concat({old.incarnation or '', old.generation or '', old.cursor or '', old.late or ''}, ' ')
end
if oldFence ~= fence then return 'moved' end
-- Redis does not undo what a script has written: a user who may no longer write the mark must fail before the first entry.
if #found > 0 then redis.call('HSET', KEYS[2], 'incarnation', old.incarnation) end
local last = '0-0'
if redis.call('EXISTS', KEYS[1]) == 1 then
  local info = redis.call('XINFO', 'STREAM', KEYS[1])
  for at = 1, #info, 2 do if info[at] == 'last-generated-id' then last = info[at + 1] end end
elseif mustExist == 'yes' then
  return 'deleted'
end
local lastMajor, lastMinor = string.match(last, '(%d+)-(%d+)')
local major, start = tonumber(mark.generation), 1
lastMajor, lastMinor = tonumber(lastMajor), tonumber(lastMinor)
while start <= #lines do
  local stop = string.find(lines, '\\n', start, true)
  local text = string.sub(lines, start, stop - 1)
  local seq = string.match(text, '^{"specversion":"1.0","id":"[^"]*:(%d+)"')
  if start == 1 and (lastMajor > major or (lastMajor == major and lastMinor >= tonumber(seq))) then return last end
  local id = mark.generation .. '-' .. seq
  if maxlen == '' then
    redis.call('XADD', KEYS[1], id, 'event', text)
  else
    redis.call('XADD', KEYS[1], 'MAXLEN', '~', maxlen, id, 'event', text)
  end
  start = stop + 1
end
redis.call('HSET', KEYS[2], unpack(ARGV, 5))
return 'stored'`;

/** Parts of a mark that the script compares, as `isSameMark` does. */
function fenceOf({ incarnation, generation, cursor, late }: Mark): string {
  return [incarnation, generation, cursor, late].join(' ');
}

const COMMAND_TIMEOUT_MS = 30_000;
const CONNECT_TIMEOUT_MS = 10_000;

function toSinkError(error: unknown): SinkError {
  const message = reasonOf(error);
  const isCluster = /^(MOVED|ASK|CROSSSLOT|CLUSTERDOWN) /.test(message);
  const where = isCluster ? 'it is a node of a cluster, which is not supported; use another Redis: ' : '';
  // The driver quotes the answer of a sentinel.
  const isSetting = /\b(NOAUTH|WRONGPASS|NOPERM|WRONGTYPE|ERR (unknown command|DB index|The user|No such))/.test(
    message,
  );
  const failure = isCluster || isSetting ? 'misconfigured' : 'unavailable';
  const timedOut = message === 'Command timed out';
  return new SinkError(failure, `Redis: ${where}${message}`, { cause: error, timedOut });
}

/** Leaves out catchword's options, and credentials and a database, about whose errors the driver would say less. */
function driverUrl(url: URL): URL {
  const plain = new URL(url);
  plain.username = '';
  plain.password = '';
  plain.pathname = isBehindSentinels(url) ? (url.pathname.split('/')[1] ?? '') : '';
  const options = url.search.slice(1).split('&');
  plain.search = options.filter((option) => option.startsWith('sentinel_')).join('&');
  return plain;
}

/** A member that the types of the driver leave out. What it says of a sentinel is only that the connection is closed. */
interface Internals {
  readonly connector: { connectToSentinel?: (...asked: readonly unknown[]) => Redis };
}

async function connect(url: URL, urls: readonly URL[], life: ConnectionLife): Promise<Redis> {
  let reason: unknown;
  const connecting = redisPlace(urls.map(driverUrl)).open({
    ...(url.username !== '' && { username: decoded(url.username) }),
    ...(url.password !== '' && { password: decoded(url.password) }),
    lazyConnect: true,
    // The relay reconnects.
    retryStrategy: null,
    sentinelRetryStrategy: () => null,
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    connectTimeout: CONNECT_TIMEOUT_MS,
    commandTimeout: COMMAND_TIMEOUT_MS,
    // A server that is still loading says so to each command.
    enableReadyCheck: false,
    disableClientInfo: true,
  });
  const note = (error: unknown): void => {
    reason ??= error;
  };
  connecting.on('error', note).on('sentinelError', note);
  const { connector } = connecting as unknown as Internals;
  const ask = connector.connectToSentinel?.bind(connector);
  if (ask !== undefined) {
    connector.connectToSentinel = (...asked) =>
      ask(...asked).on('error', (error) => note(Object.assign(error, { message: `the sentinel: ${error.message}` })));
  }
  connecting.on('connect', () => life.own(connecting.stream));
  connecting.on('close', () => life.end(reason ?? new Error('the server closed the connection')));
  life.atEnd(() => {
    // Does not wait for the server; without a socket yet, the driver does not make one any more.
    connecting.disconnect();
    connecting.stream?.destroy();
  });
  try {
    await connecting.connect();
    // One sentinel that answers is enough.
    reason = undefined;
    await connecting.select(Number(url.pathname.split('/')[isBehindSentinels(url) ? 2 : 1] || '0'));
    return connecting;
  } catch (error) {
    throw reason ?? error;
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
    await db.eval(APPEND, 2, stream, markKey);
  } finally {
    await db.discard();
  }
}

export const createRedisSink: SinkFactory = ({ url, urls, hide }) => {
  const { stream, maxlen } = readOptions(url, OPTIONS, isBehindSentinels(url) ? SENTINEL_OPTIONS : []);
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

  /** Rejects a stream with entries of others, because ids must grow. @returns whether the stream exists */
  async function rejectForeignEntries(db: Redis, generation: number, cursor: number): Promise<boolean> {
    if ((await db.exists(stream)) === 0) return false;
    const lastId = String(await streamInfo(db, stream, 'last-generated-id'));
    const [major = 0, minor = 0] = lastId.split('-').map(Number);
    if (major < generation || (major === generation && minor <= cursor)) return true;
    throw notOurs(lastId);
  }

  async function open(db: Redis, mark: Mark): Promise<OpenStore<EventLines>> {
    /** The mark in Redis, and whether the stream exists, as this process left them. */
    let written = await readMark(db, markKey);
    let exists = (await db.exists(stream)) > 0;
    if (exists && written === null) await rejectForeignStream(db);
    await tryToAppend(db, stream, markKey);

    const deletedStream = () => new SinkError('unavailable', `Redis: another client has deleted stream ${stream}`);
    const movedCursor = () => new SinkError('unavailable', `Redis: another process changed the cursor in ${markKey}`);

    return {
      // Without the stream, nothing that was confirmed is left.
      position: exists ? written : markAtStart(mark),
      deliver: async ({ bytes }, mark) => {
        const lines = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
        const options = [maxlen ?? '', exists ? 'yes' : 'no', written === null ? '' : fenceOf(written)];
        const answer = await db.eval(APPEND, 2, stream, markKey, ...options, lines, ...Object.entries(mark).flat());
        if (answer === 'moved') throw movedCursor();
        if (answer === 'deleted') throw deletedStream();
        if (answer !== 'stored') throw notOurs(String(answer));
        written = mark;
        exists = true;
      },
      recheck: async () => {
        if (exists && (await db.exists(stream)) === 0) throw deletedStream();
        if (!isSameMark(await readMark(db, markKey), written)) throw movedCursor();
      },
    };
  }

  return createTextSink({
    hide,
    batch: { events: 1_000, chars: 2_000_000 },
    connect: (life) => connect(url, urls, life),
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
