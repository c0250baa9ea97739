import type { Clock } from '../../src/clock.ts';
import { createRandom, type Random } from '../../src/sandbox/catalog/random.ts';

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

/** One thread, one clock, one order of events. Time passes when there is nothing left to do at the current time. */
export interface World {
  now(): number;
  readonly random: Random;
  at(ms: number, work: () => void, owner?: Owner): void;
  clockOf(owner: Owner): Clock;
  /** Lets time pass until `done` settles; rejects if all events are over. */
  until<T>(done: Promise<T>): Promise<T>;
  /** Lets time pass. */
  advance(ms: number): Promise<void>;
  trace(line: string): void;
  readonly lines: readonly string[];
}

/** A heap of timers by time, then by insertion order. */
function createTimers() {
  const heap: Timer[] = [];
  const before = (a: Timer, b: Timer): boolean => a.at < b.at || (a.at === b.at && a.order < b.order);
  function swap(a: number, b: number): void {
    [heap[a], heap[b]] = [heap[b] as Timer, heap[a] as Timer];
  }
  return {
    push: (timer: Timer): void => {
      let at = heap.push(timer) - 1;
      while (at > 0 && before(heap[at] as Timer, heap[(at - 1) >> 1] as Timer)) {
        swap(at, (at - 1) >> 1);
        at = (at - 1) >> 1;
      }
    },
    peek: (): Timer | undefined => heap[0],
    pop: (): Timer | undefined => {
      const top = heap[0];
      const last = heap.pop();
      if (top === undefined || last === undefined || heap.length === 0) return top;
      heap[0] = last;
      for (let at = 0; ; ) {
        let least = at;
        for (const child of [2 * at + 1, 2 * at + 2]) {
          if (child < heap.length && before(heap[child] as Timer, heap[least] as Timer)) least = child;
        }
        if (least === at) return top;
        swap(at, least);
        at = least;
      }
    },
  };
}

const START = Date.UTC(2026, 0, 1);

export function createWorld(seed: number, onStep: () => void): World {
  const timers = createTimers();
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

  async function step(): Promise<boolean> {
    const timer = timers.pop();
    if (timer === undefined) return false;
    now = Math.max(now, timer.at);
    const { owner } = timer;
    if (owner?.dead) return true;
    if (owner !== null && owner.pausedUntil > now) {
      timers.push({ ...timer, at: owner.pausedUntil });
      return true;
    }
    timer.fire();
    await settle();
    onStep();
    return true;
  }

  function at(ms: number, work: () => void, owner: Owner | null = null): void {
    timers.push({ at: ms, order: order++, owner, fire: work });
  }

  return {
    now: () => now,
    random,
    lines,
    trace: (line) => {
      lines.push(`${now - START} ${line}`);
    },
    at,
    clockOf: (owner) => ({
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
    until: async (done) => {
      let settled = false;
      const mark = (): void => {
        settled = true;
      };
      done.then(mark, mark);
      await settle();
      onStep();
      while (!settled) {
        if (!(await step())) throw new Error('the simulation stands still: nothing will ever happen again');
      }
      return await done;
    },
    advance: async (ms) => {
      const end = now + ms;
      // Work started at this time continues before time passes.
      await settle();
      for (;;) {
        const next = timers.peek();
        if (next === undefined || next.at > end) break;
        await step();
      }
      now = Math.max(now, end);
    },
  };
}
