import { isBehindSentinels } from '@catchword/base/host-urls';
import { decoded } from '@catchword/base/percent-decode';
import { reasonOf, redisPlace } from '@catchword/base/redis-place';
import type { ConnectionLife } from '@catchword/sink-kit/connection-scope';
import { type Mark, SinkError, type SinkSettings } from '@catchword/sink-kit/sink';
import { isSameMark, markSchema } from '@catchword/sink-kit/stored-mark';
import type { Redis } from 'ioredis';

/* What both kinds of Redis sinks share: the connection, and the mark in a hash that their scripts compare and move. */

/** Parts of a mark that a script compares, as `isSameMark` does. */
const FENCE = ['incarnation', 'generation', 'cursor', 'late'] as const;

/**
 * Makes a script of Lua that writes something and moves the mark; KEYS: the hash of the mark, maybe another key. If another mark
 * than expected is there, it does nothing and returns `moved`.
 * @param write gets its own ARGV from 15 on, and may return why it writes nothing
 */
export function movingMark(write: string): string {
  return `
local found, old = redis.call('HGETALL', KEYS[1]), {}
for at = 1, #found, 2 do old[found[at]] = found[at + 1] end
for at, part in ipairs({'${FENCE.join("', '")}'}) do
  if (old[part] or '') ~= ARGV[at] then return 'moved' end
end
-- Redis does not undo what a script has written: a user who may no longer write the mark must fail before the first entry.
if #found > 0 then redis.call('HSET', KEYS[1], 'incarnation', old.incarnation) end
${write}
redis.call('HSET', KEYS[1], unpack(ARGV, 5, 14))
return 'stored'`;
}

const COMMAND_TIMEOUT_MS = 30_000;
const CONNECT_TIMEOUT_MS = 10_000;

/** Tells settings from failures that pass. */
export function toSinkError(error: unknown): SinkError {
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

/** Connects to the server, or to the primary that sentinels name. */
export async function connect({ url, urls }: SinkSettings, life: ConnectionLife): Promise<Redis> {
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

/** Reads the mark of a store; null if it has none. */
export async function readMark(db: Redis, markKey: string): Promise<Mark | null> {
  const found = await db.hgetall(markKey);
  const mark = Object.keys(found).length === 0 ? null : markSchema.safeParse(found).data;
  if (mark !== undefined) return mark;
  throw new SinkError('misconfigured', `Redis: catchword cannot read its cursor in ${markKey}: delete this key`);
}

/** Opens the mark of a store. @param keys the hash, and other keys of its scripts */
export async function openMark(db: Redis, keys: readonly [mark: string, ...others: string[]]) {
  const [key] = keys;
  /** As this process left it; null: the store has none. */
  let written = await readMark(db, key);
  const moved = () => new SinkError('unavailable', `Redis: another process changed the cursor in ${key}`);

  return {
    written: () => written,
    /** @throws SinkError unavailable if another process has moved it */
    check: async (): Promise<void> => {
      if (!isSameMark(await readMark(db, key), written)) throw moved();
    },
    /** Runs a script of `movingMark`. @returns `stored`, or why it wrote nothing @throws as `check` */
    move: async (script: string, to: Mark, ...values: readonly (string | number | Buffer)[]): Promise<string> => {
      const fence = FENCE.map((part) => written?.[part] ?? '');
      const answer = String(
        await db.eval(script, keys.length, ...keys, ...fence, ...Object.entries(to).flat(), ...values),
      );
      if (answer === 'moved') throw moved();
      if (answer === 'stored') written = to;
      return answer;
    },
  };
}

/** Queues commands and discards them: Redis checks rights, memory and role when a command is queued. */
export async function tryInVain(db: Redis, keys: readonly string[], queue: () => Promise<void>): Promise<void> {
  await db.watch(...keys);
  await db.multi({ pipeline: false });
  try {
    await queue();
  } finally {
    await db.discard();
  }
}
