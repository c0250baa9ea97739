import type { Reserve } from '../../pace/pacer.ts';
import { PREFIX, type QueuePlace, queueNames } from './jobs.ts';
import { type ClientOptions, reasonOf, redisPlace } from './redis-connection.ts';
import { createRedisReserve } from './redis-pace.ts';

const TIMEOUT_MS = 3_000;

/** A command has no time to wait for a Redis that is gone. */
const OPTIONS: ClientOptions = {
  lazyConnect: true,
  retryStrategy: null,
  sentinelRetryStrategy: () => null,
  maxRetriesPerRequest: 0,
  connectTimeout: TIMEOUT_MS,
  commandTimeout: TIMEOUT_MS,
};

/** Reserves requests of a command in Redis, to which it connects when the first request is made. */
export function connectReserve({ redisUrl, source, prefix = PREFIX }: QueuePlace) {
  const { label, open } = redisPlace(redisUrl);
  const redis = open(OPTIONS);
  let lost: unknown;
  redis.on('error', (error) => {
    lost ??= error;
  });
  const name = queueNames({ redisUrl, source }).fetch;
  return {
    /** Throws the first error of Redis. */
    reserve: createRedisReserve(redis, (part) => `${prefix}:${name}:${part}`) satisfies Reserve,
    /** The error of the connection says more than the one of the command. */
    reasonOf: (error: unknown): string => `Redis at ${label}: ${reasonOf(lost ?? error)}`,
    close: (): void => redis.disconnect(),
  };
}
