import { Redis } from 'ioredis';
import type { Clock } from '../../clock.ts';
import { CatchwordError, messageOf, systemCodeOf } from '../../errors.ts';
import type { Logger } from '../../log.ts';

/** What BullMQ needs: blocking commands with fractions of a second, and `GETDEL`. */
const MIN_VERSION = [6, 2] as const;
const CHECK_TIMEOUT_MS = 3_000;
/** Longer than the longest blocking command (10 s): a server that is silent for so long has gone without saying so. */
const SILENCE_MS = 20_000;
/** For commands that somebody waits for. */
const COMMAND_TIMEOUT_MS = 5_000;
const MAX_RECONNECT_DELAY_MS = 2_000;

/** `host:port` of a Redis address: all of it that may be written to a log, as the rest can hold a password. */
export function redisAddress(url: string): string {
  const { hostname, port } = new URL(url);
  return `${hostname || '127.0.0.1'}:${port || '6379'}`;
}

/** A failed connection to a name with several addresses has a code, and an empty message. */
function reasonOf(error: unknown): string {
  return messageOf(error) || systemCodeOf(error) || 'no answer';
}

/**
 * Connects, and connects again whenever the connection is lost. An outage is one line in the log, and its end another.
 * @param whenGone what happens to commands while there is no connection: `wait` for it (workers, which have nothing
 *   else to do), or `fail` (callers that must not hang)
 */
export function connectRedis(url: string, log: Logger, whenGone: 'wait' | 'fail'): Redis {
  const redis = new Redis(url, {
    ...(whenGone === 'wait'
      ? { maxRetriesPerRequest: null, socketTimeout: SILENCE_MS }
      : { maxRetriesPerRequest: 0, enableOfflineQueue: false, commandTimeout: COMMAND_TIMEOUT_MS }),
    retryStrategy: (times) => Math.min(times * 100, MAX_RECONNECT_DELAY_MS),
    // After a failover the old primary, now a replica, refuses writes: ask again who is primary, and repeat the command.
    reconnectOnError: (error) => (error.message.startsWith('READONLY') ? 2 : false),
  });
  const about = { redis: redisAddress(url) };
  let lost = false;
  function onLost(reason: string): void {
    if (lost) return;
    lost = true;
    log.warn({ ...about, reason }, 'connection to Redis lost, connecting again');
  }
  // The error object holds the command with its arguments, a password among them; its message does not.
  redis.on('error', (error) => onLost(reasonOf(error)));
  redis.on('reconnecting', () => onLost('closed by the server'));
  redis.on('ready', () => {
    if (lost) log.info(about, 'connection to Redis is back');
    lost = false;
  });
  return redis;
}

/** What ioredis and BullMQ's view of it have in common. */
interface Connection {
  readonly status: string;
  connect(): Promise<unknown>;
  disconnect(): unknown;
}

/**
 * Disconnects for good; commands without an answer are rejected. ioredis keeps them for ever when it is told to
 * disconnect between two attempts to connect, but not when it is told so during one.
 */
export function cutRedis(connection: Connection): void {
  if (connection.status === 'end') return;
  if (connection.status === 'reconnecting') connection.connect().catch(() => {});
  connection.disconnect();
}

/**
 * Waits for `work`, but not much longer than a server that is there would take.
 * @returns whether it was done in time
 */
export async function doneWithin(work: Promise<unknown>, timeoutMs: number, clock: Clock): Promise<boolean> {
  const timer = new AbortController();
  try {
    return await Promise.race([work.then(() => true), clock.sleep(timeoutMs, timer.signal).then(() => false)]);
  } finally {
    timer.abort();
  }
}

function olderThan(version: string, [minMajor, minMinor]: readonly [number, number]): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major < minMajor || (major === minMajor && minor < minMinor);
}

function refuse(message: string, hint: string, cause?: unknown): CatchwordError {
  return new CatchwordError('QUEUE_MISCONFIGURED', message, { hint, cause });
}

async function readInfo(url: string): Promise<string> {
  const redis = new Redis(url, {
    lazyConnect: true,
    retryStrategy: null,
    maxRetriesPerRequest: 0,
    connectTimeout: CHECK_TIMEOUT_MS,
    socketTimeout: CHECK_TIMEOUT_MS,
  });
  let reason: unknown;
  redis.on('error', (error) => {
    reason ??= error;
  });
  try {
    await redis.connect();
    return await redis.info();
  } catch (error) {
    const cause = reason ?? error;
    const where = `Redis at ${redisAddress(url)}`;
    if (/^(NOAUTH|WRONGPASS|NOPERM|ERR .*AUTH)/.test(messageOf(cause))) {
      throw refuse(`${where} refuses this user: ${reasonOf(cause)}`, 'Put the user and password into REDIS_URL.');
    }
    throw new CatchwordError('QUEUE_UNAVAILABLE', `${where} cannot be reached: ${reasonOf(cause)}`, {
      hint: 'Start Redis or correct REDIS_URL; without REDIS_URL everything runs in one process.',
    });
  } finally {
    redis.disconnect();
  }
}

/**
 * Whether this Redis can carry the queue. All that is asked is in `INFO`, which hosted services that forbid `CONFIG`
 * allow, too.
 * @throws CatchwordError QUEUE_UNAVAILABLE after a few seconds without an answer; QUEUE_MISCONFIGURED where it is too
 *   old, may evict keys, or refuses the user
 */
export async function checkRedis(url: string): Promise<void> {
  const info = await readInfo(url);
  const where = `Redis at ${redisAddress(url)}`;
  const version = /^redis_version:(\S+)/m.exec(info)?.[1] ?? '0';
  if (olderThan(version, MIN_VERSION)) {
    throw refuse(`${where} is version ${version}`, `Version ${MIN_VERSION.join('.')} or later is needed.`);
  }
  const policy = /^maxmemory_policy:(\S+)/m.exec(info)?.[1];
  if (policy !== undefined && policy !== 'noeviction') {
    throw refuse(
      `${where} may evict jobs: its maxmemory-policy is ${policy}`,
      'Set maxmemory-policy to noeviction, or use another Redis.',
    );
  }
}
