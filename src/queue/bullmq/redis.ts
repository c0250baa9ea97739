import type { IRedisClient } from 'bullmq';
import { Redis } from 'ioredis';
import { CatchwordError, messageOf, systemCodeOf } from '../../errors.ts';
import type { Logger } from '../../log.ts';

/** BullMQ needs blocking commands with fractions of a second, and `GETDEL`. */
const [MIN_MAJOR, MIN_MINOR] = [6, 2];
const CHECK_TIMEOUT_MS = 3_000;
/** Longer than the longest blocking command (10 s): a server that is silent for so long is gone. */
const SILENCE_MS = 20_000;
const COMMAND_TIMEOUT_MS = 5_000;
const MAX_RECONNECT_DELAY_MS = 2_000;

/** The `host:port` of a Redis address. The rest may contain a password and must not be logged. */
function redisAddress(url: string): string {
  const { hostname, port } = new URL(url);
  return `${hostname || '127.0.0.1'}:${port || '6379'}`;
}

/** The reason of an error. A failed connection to a name with several addresses has a code but an empty message. */
function reasonOf(error: unknown): string {
  return messageOf(error) || systemCodeOf(error) || 'no response';
}

/**
 * Connects, and reconnects whenever the connection is lost. Logs one line when an outage begins and one when it ends.
 * @param whenGone whether commands without a connection `wait` for it (workers) or `fail` (callers that must not hang)
 */
export function connectRedis(url: string, log: Logger, whenGone: 'wait' | 'fail'): Redis {
  const redis = new Redis(url, {
    ...(whenGone === 'wait'
      ? { maxRetriesPerRequest: null, socketTimeout: SILENCE_MS }
      : { maxRetriesPerRequest: 0, enableOfflineQueue: false, commandTimeout: COMMAND_TIMEOUT_MS }),
    retryStrategy: (times) => Math.min(times * 100, MAX_RECONNECT_DELAY_MS),
    // After a failover the old primary is a read-only replica: reconnect to the new one and repeat the command (2).
    reconnectOnError: (error) => (error.message.startsWith('READONLY') ? 2 : false),
  });
  const about = { redis: redisAddress(url) };
  let lost = false;
  function onLost(reason: string): void {
    if (lost) return;
    lost = true;
    log.warn({ ...about, reason }, 'connection to Redis lost, reconnecting');
  }
  // Logs only the message, because the error object contains the command's arguments, a password among them.
  redis.on('error', (error) => onLost(reasonOf(error)));
  redis.on('reconnecting', () => onLost('closed by the server'));
  redis.on('ready', () => {
    if (lost) log.info(about, 'connection to Redis restored');
    lost = false;
  });
  return redis;
}

/** Disconnects for good. Between two attempts to connect, ioredis would never settle commands: this starts one first. */
export function cutRedis(connection: Pick<IRedisClient, 'status' | 'connect' | 'disconnect'>): void {
  if (connection.status === 'end') return;
  if (connection.status === 'reconnecting') connection.connect().catch(() => {});
  connection.disconnect();
}

function misconfigured(message: string, hint: string): CatchwordError {
  return new CatchwordError('QUEUE_MISCONFIGURED', message, { hint });
}

async function readInfo(url: string, where: string): Promise<string> {
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
    const cause = reasonOf(reason ?? error);
    if (/^(NOAUTH|WRONGPASS|NOPERM|ERR .*AUTH)/.test(cause)) {
      throw misconfigured(`${where} rejects this user: ${cause}`, 'Put the user and password into REDIS_URL.');
    }
    throw new CatchwordError('QUEUE_UNAVAILABLE', `${where} cannot be reached: ${cause}`, {
      hint: 'Start Redis or correct REDIS_URL; without REDIS_URL everything runs in one process.',
    });
  } finally {
    redis.disconnect();
  }
}

/**
 * Checks that Redis can hold the queue. Uses only `INFO`, because hosted services may forbid `CONFIG`.
 * @throws CatchwordError QUEUE_UNAVAILABLE after a few seconds without a response; QUEUE_MISCONFIGURED if Redis is too
 *   old, may evict keys, or rejects the user
 */
export async function checkRedis(url: string): Promise<void> {
  const where = `Redis at ${redisAddress(url)}`;
  const info = await readInfo(url, where);
  const version = /^redis_version:(\S+)/m.exec(info)?.[1] ?? '0';
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major < MIN_MAJOR || (major === MIN_MAJOR && minor < MIN_MINOR)) {
    throw misconfigured(`${where} is version ${version}`, `Upgrade Redis to ${MIN_MAJOR}.${MIN_MINOR} or later.`);
  }
  const policy = /^maxmemory_policy:(\S+)/m.exec(info)?.[1] ?? 'noeviction';
  if (policy === 'noeviction') return;
  const hint = 'Set maxmemory-policy to noeviction, or use another Redis.';
  throw misconfigured(`${where} may evict jobs: its maxmemory-policy is ${policy}`, hint);
}
