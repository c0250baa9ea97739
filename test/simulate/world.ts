import type { Clock } from '@catchword/base/clock';
import { createRandom } from '@catchword/sandbox/catalog/random';

interface Timer {
  readonly at: number;
  readonly order: number;
  readonly owner: Owner | null;
  fire(): void;
}

/** A simulated process, which can be suspended or killed. */
export interface Owner {
  readonly name: string;
  /** Difference of its clock from the world's, milliseconds. */
  skewMs: number;
  /** It is suspended until then, by the world's clock. */
  pausedUntil: number;
  dead: boolean;
}

const START = Date.UTC(2026, 0, 1);

export type World = ReturnType<typeof createWorld>;

/** One thread, one clock, one order of events. Time passes when there is nothing left to do at the current time. */
export function createWorld(seed: number) {
  /** By time, then by the order in which they were set. */
  const timers: Timer[] = [];
  const lines: string[] = [];
  const random = createRandom(seed);
  let now = START;
  let order = 0;

  /** Waits for a macrotask, after which everything that can happen at this time has happened. */
  function settle(): Promise<void> {
    return new Promise((resolve) => {
      setImmediate(resolve);
    });
  }

  function insert(timer: Timer): void {
    const isBefore = (other: Timer) => other.at < timer.at || (other.at === timer.at && other.order < timer.order);
    timers.splice(timers.findLastIndex(isBefore) + 1, 0, timer);
  }

  async function step(): Promise<boolean> {
    const timer = timers.shift();
    if (timer === undefined) return false;
    now = Math.max(now, timer.at);
    const { owner } = timer;
    if (owner?.dead) return true;
    if (owner !== null && owner.pausedUntil > now) {
      insert({ ...timer, at: owner.pausedUntil });
      return true;
    }
    timer.fire();
    await settle();
    return true;
  }

  function at(ms: number, fire: () => void, owner: Owner | null = null): void {
    insert({ at: ms, order: order++, owner, fire });
  }

  return {
    now: () => now,
    random,
    lines: lines as readonly string[],
    trace: (line: string): void => {
      lines.push(`${now - START} ${line}`);
    },
    at,
    clockOf: (owner: Owner): Clock => ({
      now: () => now + owner.skewMs,
      random,
      sleep: (ms, signal) =>
        new Promise((resolve, reject) => {
          if (signal?.aborted) {
            reject(signal.reason);
            return;
          }
          const onAbort = (): void => reject(signal?.reason);
          signal?.addEventListener('abort', onAbort, { once: true });
          at(
            now + Math.max(0, ms),
            () => {
              signal?.removeEventListener('abort', onAbort);
              resolve();
            },
            owner,
          );
        }),
    }),
    /** Lets time pass until `done` settles; rejects if all events are over. */
    until: async <T>(done: Promise<T>): Promise<T> => {
      let settled = false;
      const mark = (): void => {
        settled = true;
      };
      done.then(mark, mark);
      await settle();
      while (!settled) {
        if (!(await step())) throw new Error('the simulation stands still: nothing will ever happen again');
      }
      return await done;
    },
    /** Lets time pass. */
    advance: async (ms: number): Promise<void> => {
      const end = now + ms;
      // Work started at this time continues before time passes.
      await settle();
      for (;;) {
        const [next] = timers;
        if (next === undefined || next.at > end) break;
        await step();
      }
      now = Math.max(now, end);
    },
  };
}
