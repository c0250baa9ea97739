import type { Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import type { Clock } from '../../base/clock.ts';
import { createPacer, type Pacer } from '../../pace/pacer.ts';

/** Waits are split into steps, because an operator may end a pause; milliseconds. */
const STEP_MS = 1_000;

/**
 * Counts a request as BullMQ counts a job that becomes active (its script `moveToActive`).
 * @returns 0, or the milliseconds until the next turn
 */
const TAKE = `
  local max, duration = unpack(redis.call('HMGET', KEYS[2], 'max', 'duration'))
  if not max then return 0 end
  local left = redis.call('PTTL', KEYS[1])
  if left > 0 and tonumber(redis.call('GET', KEYS[1])) >= tonumber(max) then return left end
  if left <= 0 then redis.call('DEL', KEYS[1]) end
  if redis.call('INCR', KEYS[1]) == 1 then redis.call('PEXPIRE', KEYS[1], duration) end
  return 0`;

/** Takes turns of the limiter that all fetchers share, for requests besides those of jobs. */
export function createTurns(connection: Redis, worker: Worker, clock: Clock): Pacer {
  return {
    ...createPacer({ pace: null, clock }),
    acquire: async (signal: AbortSignal, _patienceMs?: number, isWanted?: () => boolean) => {
      while (isWanted?.() !== false) {
        const leftMs = Number(await connection.eval(TAKE, 2, worker.toKey('limiter'), worker.toKey('meta')));
        if (leftMs === 0) return true;
        await clock.sleep(Math.min(leftMs, STEP_MS), signal);
      }
      return false;
    },
  };
}
