import { hostUrls } from '../../base/host-urls.ts';
import { reasonOf, redisPlace } from '../../base/redis-place.ts';
import type { Pace } from '../../pace/pace.ts';
import { PREFIX, type QueuePlace, queueNames } from './jobs.ts';
import { ONE_TRY, ONE_TRY_MS } from './redis-connection.ts';
import { createRedisTurns } from './redis-pace.ts';

/**
 * Takes turns of a command in Redis, to which it connects for the first one.
 * @param onGone called once with the first error, from which on the command does without Redis
 */
export function connectTurns({ redisUrl, source }: QueuePlace, onGone: (reason: string) => void) {
  const { label, open } = redisPlace(hostUrls(redisUrl));
  const redis = open({ ...ONE_TRY, commandTimeout: ONE_TRY_MS });
  let lost: unknown;
  redis.on('error', (error) => {
    lost ??= error;
  });
  const name = queueNames({ redisUrl, source }).fetch;
  let own: Pace | null = null;
  const turns = createRedisTurns(
    redis,
    (part) => `${PREFIX}:${name}:${part}`,
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
