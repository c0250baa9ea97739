import { isIP } from 'node:net';
import type { IRedisClient } from 'bullmq';
import { Redis, type RedisOptions } from 'ioredis';
import type { Clock } from '../../base/clock.ts';
import { messageOf, systemCodeOf } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import { unbracketed } from '../../base/loopback.ts';
import { redisUrls } from '../../base/redis-address.ts';
import type { RedisTrouble } from '../redis-trouble.ts';

/** Longer than the longest blocking command (10 s): a server that is silent for so long is gone. */
const SILENCE_MS = 20_000;
const COMMAND_TIMEOUT_MS = 5_000;
const MAX_RECONNECT_DELAY_MS = 2_000;
/** A connection that is lost sooner is opened again after growing pauses, and without further lines in the log. */
const SHORT_LIFE_MS = 60_000;

export type ClientOptions = Omit<RedisOptions, 'replyMapping'>;

export const ONE_TRY_MS = 3_000;
/** For a client that connects when it is first asked, and does not wait for a Redis that is gone. */
export const ONE_TRY: ClientOptions = {
  lazyConnect: true,
  retryStrategy: null,
  sentinelRetryStrategy: () => null,
  maxRetriesPerRequest: 0,
  connectTimeout: ONE_TRY_MS,
};

/** Where a server is, as ioredis takes it. */
interface Endpoint extends Pick<ClientOptions, 'tls'> {
  readonly host: string;
  readonly port: number;
}

/** What an address of the form of REDIS_URL means. */
export interface RedisPlace {
  /** `host:port`, or the name of the primary and its sentinels. The address may contain a password; this does not. */
  readonly label: string;
  readonly sentinels: {
    /** The name by which they know the primary. */
    readonly name: string;
    readonly endpoints: readonly Endpoint[];
    /** They have users of their own, and need none by default. The password of Redis is not for them. */
    readonly login: Pick<ClientOptions, 'username' | 'password'>;
  } | null;
  /** Makes a client of the server; with sentinels, of the primary that they name whenever it connects. */
  readonly open: (options: ClientOptions) => Redis;
}

export function labelOf({ host, port }: Endpoint): string {
  return `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
}

function endpointOf({ protocol, hostname, port }: URL, defaultPort: number): Endpoint {
  const host = unbracketed(hostname) || '127.0.0.1';
  // Node.js does not send the host's name by itself, which a server with several certificates needs.
  const tls = protocol.startsWith('rediss') && { tls: isIP(host) === 0 ? { servername: host } : {} };
  return { host, port: Number(port || defaultPort), ...tls };
}

/** @param urls of all sentinels */
function placeBehind(urls: readonly URL[], url: URL): RedisPlace {
  const [, name = '', db = ''] = url.pathname.split('/');
  // In a query, + would be a space.
  const query = new URLSearchParams(url.search.replaceAll('+', '%2B'));
  const username = query.get('sentinel_user') ?? undefined;
  const password = query.get('sentinel_password') ?? undefined;
  const endpoints = urls.map((each) => endpointOf(each, 26_379));
  const server = new URL(url);
  server.protocol = url.protocol.replace('+sentinel', '');
  server.pathname = db;
  server.search = '';
  return {
    label: `${name} (sentinels ${endpoints.map(labelOf).join(', ')})`,
    sentinels: { name, endpoints, login: { username, password } },
    open: (options) =>
      new Redis(server.href, {
        ...options,
        name,
        sentinels: endpoints.map(({ host, port }) => ({ host, port })),
        sentinelUsername: username,
        sentinelPassword: password,
        // Without a limit, a frozen sentinel would never be given up.
        sentinelCommandTimeout: COMMAND_TIMEOUT_MS,
        ...(server.protocol === 'rediss:' && { tls: {}, sentinelTLS: {}, enableTLSForSentinelMode: true }),
      }),
  };
}

/** @param address of the form of REDIS_URL, which the setting's form has checked */
export function redisPlace(address: string): RedisPlace {
  const urls = redisUrls(address);
  const [url = new URL(address)] = urls;
  if (url.protocol.endsWith('+sentinel:')) return placeBehind(urls, url);
  const { tls, ...endpoint } = endpointOf(url, 6379);
  return {
    label: labelOf(endpoint),
    sentinels: null,
    open: (options) => new Redis(address, { ...options, ...(tls && { tls }) }),
  };
}

/**
 * The reason of an error. A failed connection to a name with several addresses has a code but an empty message. Redis
 * quotes the arguments of a command that it does not know: of AUTH, the password.
 */
export function reasonOf(error: unknown): string {
  return messageOf(error).replace(/, with args beginning with:.*/s, '') || systemCodeOf(error) || 'no response';
}

/** Connections that `cutRedis` has ended. A server may still answer the end of one, with an alert of TLS for example. */
const cut = new WeakSet<object>();

export interface ConnectionOptions {
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
  { clock, log, trouble }: ConnectionOptions,
  whenGone: 'wait' | 'fail',
): Redis {
  const { label, open } = redisPlace(url);
  let readyAt = Number.NEGATIVE_INFINITY;
  let shortLives = 0;
  let isReplica = false;
  const redis = open({
    ...(whenGone === 'wait'
      ? { maxRetriesPerRequest: null }
      : { maxRetriesPerRequest: 0, enableOfflineQueue: false, commandTimeout: COMMAND_TIMEOUT_MS }),
    socketTimeout: SILENCE_MS,
    retryStrategy: (times) => {
      // A connection that was ready before starts to count again.
      if (times === 1) shortLives = Math.abs(clock.now() - readyAt) < SHORT_LIFE_MS ? shortLives + 1 : 0;
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
  function onLost(reason: string): void {
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
