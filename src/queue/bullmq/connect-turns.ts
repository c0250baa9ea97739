import type { Pace } from '../../pace/pace.ts';
import { PREFIX, type QueuePlace, queueNames } from './jobs.ts';
import { type ClientOptions, reasonOf, redisPlace } from './redis-connection.ts';
import { createRedisTurns } from './redis-pace.ts';

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

/**
 * Takes turns of a command in Redis, to which it connects for the first one.
 * @param onGone called once with the first error, from which on the command does without Redis
 */
export function connectTurns({ redisUrl, source, prefix = PREFIX }: QueuePlace, onGone: (reason: string) => void) {
  const { label, open } = redisPlace(redisUrl);
  const redis = open(OPTIONS);
  let lost: unknown;
  redis.on('error', (error) => {
    lost ??= error;
  });
  const name = queueNames({ redisUrl, source }).fetch;
  let own: Pace | null = null;
  const turns = createRedisTurns(
    redis,
    (part) => `${prefix}:${name}:${part}`,
    () => own,
  );
  return {
    take: async (pace: Pace | null) => {
      own = pace;
      try {
        return await turns.take();
      } catch (error) {
        // The error of the connection says more than the one of the command.
        onGone(`Redis at ${label}: ${reasonOf(lost ?? error)}`);
        return null;
      }
    },
    pause: (pauseMs: number): void => void turns.pause(pauseMs).catch(() => {}),
    close: (): void => redis.disconnect(),
  };
}
