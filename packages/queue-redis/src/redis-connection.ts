import type { Clock } from '@catchword/base/clock';
import { messageOf } from '@catchword/base/errors';
import { hostUrls } from '@catchword/base/host-urls';
import type { Logger } from '@catchword/base/log';
import { type ClientOptions, reasonOf, redisPlace } from '@catchword/base/redis-place';
import type { IRedisClient } from 'bullmq';
import type { Redis } from 'ioredis';
import type { RedisTrouble } from './redis-trouble.ts';

/** Longer than the longest blocking command (10 s): a server that is silent for so long is gone. */
const SILENCE_MS = 20_000;
const COMMAND_TIMEOUT_MS = 5_000;
const MAX_RECONNECT_DELAY_MS = 2_000;
/** A connection that is lost sooner is opened again after growing pauses, and without further lines in the log. */
const SHORT_LIFE_MS = 60_000;

export const ONE_TRY_MS = 3_000;
/** For a client that connects when it is first asked, and does not wait for a Redis that is gone. */
export const ONE_TRY: ClientOptions = {
  lazyConnect: true,
  retryStrategy: null,
  sentinelRetryStrategy: () => null,
  maxRetriesPerRequest: 0,
  connectTimeout: ONE_TRY_MS,
};

/** Connections that `cutRedis` has ended. A server may still answer the end of one, with an alert of TLS for example. */
const cut = new WeakSet<object>();

export interface ConnectionOptions {
  /** Reads the address of Redis again, whose password may have changed. @throws CatchwordError CONFIG_INVALID */
  readonly redisUrlAgain?: (() => Promise<string | undefined>) | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  readonly trouble: RedisTrouble;
}

/**
 * Connects, and reconnects whenever the connection is lost. Logs one line when an outage begins and one when it ends.
 * @param whenGone whether commands without a connection `wait` for it (workers) or `fail` (callers that must not hang)
 */
export function connectRedis(
  url: string,
  { clock, log, trouble, redisUrlAgain }: ConnectionOptions,
  whenGone: 'wait' | 'fail',
): Redis {
  const { label, open } = redisPlace(hostUrls(url));
  /** Takes users and passwords of the address as it is now, before the next attempt or one after it. */
  async function takeLogin(options: object): Promise<void> {
    const now = await redisUrlAgain?.();
    if (now !== undefined) Object.assign(options, redisPlace(hostUrls(now)).login);
  }
  let readyAt: number | null = null;
  let shortLives = 0;
  let isReplica = false;
  const redis = open({
    ...(whenGone === 'wait'
      ? { maxRetriesPerRequest: null }
      : { maxRetriesPerRequest: 0, enableOfflineQueue: false, commandTimeout: COMMAND_TIMEOUT_MS }),
    socketTimeout: SILENCE_MS,
    // BullMQ duplicates a worker's connection, and both call this function: it must not count lives.
    retryStrategy(times) {
      // ioredis calls it as a method of the options of the connection, which may be BullMQ's own.
      takeLogin(this).catch((error) => trouble.failed('read the address again', messageOf(error)));
      return Math.min((times + shortLives) * 100, MAX_RECONNECT_DELAY_MS);
    },
    // After a failover the old primary is a read-only replica: reconnect to the new one and repeat the command (2).
    reconnectOnError: ({ message }) => {
      if (!message.startsWith('READONLY')) return false;
      isReplica = true;
      trouble.failed('write', message);
      return 2;
    },
  });
  const about = { redis: label };
  let lost = false;
  function countLife(): void {
    if (readyAt === null) return;
    shortLives = Math.abs(clock.now() - readyAt) < SHORT_LIFE_MS ? shortLives + 1 : 0;
    readyAt = null;
  }
  function onLost(reason: string): void {
    countLife();
    if (lost || cut.has(redis)) return;
    if (shortLives > 1) {
      trouble.failed('keep a connection', reason);
      return;
    }
    lost = true;
    trouble.setLost(true);
    log.warn({ ...about, reason }, 'connection to Redis lost, reconnecting');
  }
  // Logs only the message, because the error object contains the command's arguments, a password among them.
  redis.on('error', (error) => onLost(reasonOf(error)));
  redis.on('reconnecting', () => {
    countLife();
    if (!isReplica) onLost('closed by the server');
  });
  redis.on('ready', () => {
    if (lost) log.info(about, 'connection to Redis restored');
    lost = false;
    trouble.setLost(false);
    isReplica = false;
    readyAt = clock.now();
  });
  return redis;
}

/** Disconnects for good. Between two attempts to connect, ioredis would never settle commands: this starts one first. */
export function cutRedis(connection: Pick<IRedisClient, 'status' | 'connect' | 'disconnect'>): void {
  cut.add(connection);
  if (connection.status === 'end') return;
  if (connection.status === 'reconnecting') connection.connect().catch(() => {});
  connection.disconnect();
}
