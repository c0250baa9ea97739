import { setImmediate as turn } from 'node:timers/promises';
import type { Clock } from '@catchword/base/clock';
import { CatchwordError } from '@catchword/base/errors';
import { type FetchOutcome, taskId } from '@catchword/catalog/page-types';
import type { PageQueue, ReadWindow } from '@catchword/queue/queue-port';
import { afterEach, expect, it } from 'vitest';
import {
  type BeforeResponse,
  createGate,
  createScriptedSource,
  heldAnswer,
  task,
  untilAborted,
} from './scripted-source.ts';

export interface QueueSetup {
  readonly read: ReadWindow;
  readonly concurrency: number;
  readonly intervalMs: number | null;
}

export interface OpenedQueue {
  readonly queue: PageQueue;
  /** Makes the queue lose the waiting tasks. */
  readonly lose: () => Promise<void>;
  /** Closes the queue and its fetchers. */
  readonly close: () => Promise<void>;
}

export interface Collected {
  readonly outcomes: readonly FetchOutcome[];
  /** Resolves when that many outcomes were delivered. */
  readonly count: (wanted: number) => Promise<void>;
}

/** Collects outcomes; `handle` may wait or throw. */
export async function collect(
  queue: PageQueue,
  handle: (outcome: FetchOutcome) => Promise<void> | void = () => {},
): Promise<Collected> {
  const outcomes: FetchOutcome[] = [];
  const waiting = new Set<{ readonly wanted: number; readonly resolve: () => void }>();
  await queue.consume(async (outcome) => {
    outcomes.push(outcome);
    for (const waiter of waiting) if (outcomes.length >= waiter.wanted) waiter.resolve();
    await handle(outcome);
  });
  return {
    outcomes,
    count: (wanted) =>
      new Promise((resolve) => {
        if (outcomes.length >= wanted) resolve();
        else waiting.add({ wanted, resolve });
      }),
  };
}

export function idOf(outcome: FetchOutcome): string {
  return taskId(outcome.task);
}

function ids(outcomes: readonly FetchOutcome[]): string[] {
  return outcomes.map(idOf);
}

const pages = (first: number, last: number) =>
  Array.from({ length: last - first + 1 }, (_, index) => task(first + index));

const unavailable = () => new CatchwordError('SOURCE_UNAVAILABLE', 'the source answers 503');

/** Tests that every adapter of the queue port must pass. */
export function itKeepsTheContract(clock: Clock, open: (setup: QueueSetup) => Promise<OpenedQueue>): void {
  let opened: OpenedQueue | undefined;
  afterEach(async () => {
    await opened?.close();
    opened = undefined;
  });

  interface Scene {
    readonly concurrency?: number;
    readonly intervalMs?: number;
    readonly handle?: (outcome: FetchOutcome, queue: PageQueue) => Promise<void> | void;
  }

  /** Opens a queue of a source, and consumes its outcomes. */
  async function start(answer?: BeforeResponse, { concurrency = 1, intervalMs, handle }: Scene = {}) {
    const source = createScriptedSource(clock, answer);
    opened = await open({ read: source.read, concurrency, intervalMs: intervalMs ?? null });
    const { queue } = opened;
    const collected = await collect(queue, (outcome) => handle?.(outcome, queue));
    return { source, ...opened, ...collected };
  }

  it('a queue delivers pages as they were read', async () => {
    const { source, queue, outcomes, count } = await start();
    const wanted = task(7, { from: 1_700_000_000_000 });
    await queue.add([wanted]);
    await count(1);
    expect(outcomes).toEqual([{ kind: 'captured', task: wanted, ...(await readAlone(wanted)), requests: 1 }]);

    async function readAlone(again: typeof wanted) {
      const { page, response } = await source.read(again, new AbortController().signal, 1);
      const { requestedAt, receivedAt } = response;
      expect(receivedAt).toBeGreaterThanOrEqual(requestedAt);
      const at = { requestedAt: expect.any(Number), receivedAt: expect.any(Number) };
      return { page, response: { ...response, ...at } };
    }
  });

  it('a queue delivers in the order of arrival', async () => {
    const { queue, outcomes, count } = await start(undefined, { handle: () => turn() });
    await queue.add(pages(1, 12));
    await count(12);
    expect(ids(outcomes)).toEqual(pages(1, 12).map(taskId));
  });

  it('a queue delivers one outcome at a time', async () => {
    let handling = 0;
    let most = 0;
    const handle = async (): Promise<void> => {
      handling++;
      most = Math.max(most, handling);
      await turn();
      handling--;
    };
    const { queue, count } = await start(undefined, { concurrency: 4, handle });
    await queue.add(pages(1, 12));
    await count(12);
    expect(most).toBe(1);
  });

  it('a queue continues after the consumer threw', async () => {
    const handle = (): void => {
      throw new Error('not accepted');
    };
    const { queue, count } = await start(undefined, { handle });
    await queue.add(pages(1, 3));
    await count(3);
  });

  it('a queue ignores a task that waits, is in flight, or is being delivered', async () => {
    const { asked, gate, answer } = heldAnswer(1);
    const handle = (_: FetchOutcome, to: PageQueue) => to.add([task(1), task(2)]);
    const { source, queue, outcomes, count } = await start(answer, { handle });
    await queue.add([task(1), task(2), task(2)]);
    await asked.passed;
    await queue.add([task(1), task(2)]);
    gate.open();
    await count(2);
    await queue.add([task(3)]);
    await count(3);
    // Page 1 was added again while page 2 was delivered, when page 1 was already done.
    expect(ids(outcomes).slice(0, 2)).toEqual([task(1), task(2)].map(taskId));
    expect(source.requests.filter(({ id }) => id === taskId(task(2)))).toHaveLength(1);
  });

  it('a queue accepts a task again after its outcome was delivered', async () => {
    const { source, queue, count } = await start();
    await queue.add([task(1)]);
    await count(1);
    // The adapter may need a moment to delete the job.
    while (source.requests.length < 2) {
      await queue.add([task(1)]);
      await turn();
    }
    await count(2);
  });

  it('a queue retries a retryable error', async () => {
    const { source, queue, outcomes, count } = await start((_, nth) => {
      if (nth < 3) throw unavailable();
    });
    await queue.add([task(1)]);
    await count(1);
    expect(outcomes).toMatchObject([{ kind: 'captured', requests: 3 }]);
    expect(source.requests).toHaveLength(3);
  });

  it('a queue delivers the error of the last attempt', async () => {
    const { source, queue, outcomes, count } = await start(() => {
      throw unavailable();
    });
    await queue.add([task(1, { maxAttempts: 2 })]);
    await count(1);
    const error = { code: 'SOURCE_UNAVAILABLE', message: 'the source answers 503', retryable: true };
    expect(outcomes).toEqual([{ kind: 'failed', task: task(1, { maxAttempts: 2 }), error, requests: 2 }]);
    expect(source.requests).toHaveLength(2);
  });

  it('a queue delivers an error that is not retryable at once', async () => {
    const { queue, outcomes, count } = await start(({ window }) => {
      if (window.page === 1) throw new CatchwordError('SOURCE_AUTH', 'the key was rejected', { hint: 'Check it.' });
      throw new TypeError('a fault of the program');
    });
    await queue.add(pages(1, 2));
    await count(2);
    expect(outcomes).toMatchObject([
      { kind: 'failed', requests: 1, error: { code: 'SOURCE_AUTH', retryable: false, hint: 'Check it.' } },
      { kind: 'failed', requests: 1, error: { code: 'PAGE_INVALID', retryable: false } },
    ]);
  });

  it('a queue makes no request before Retry-After has passed', async () => {
    const retryAfterMs = 300;
    let refusedAt = 0;
    const answer: BeforeResponse = ({ window }, nth) => {
      if (window.page !== 2 || nth > 1) return;
      refusedAt = clock.now();
      throw new CatchwordError('SOURCE_RATE_LIMITED', 'the source answers 429', { retryAfterMs });
    };
    const { source, queue, outcomes, count } = await start(answer, { concurrency: 2 });
    await queue.add(pages(1, 1));
    await count(1);
    await queue.add(pages(2, 2));
    while (refusedAt === 0) await turn();
    await queue.add(pages(3, 6));
    await count(6);
    const later = source.requests.filter((_, index) => index >= 2);
    expect(later).toHaveLength(5);
    expect(Math.min(...later.map(({ at }) => at))).toBeGreaterThanOrEqual(refusedAt + retryAfterMs);
    const again = outcomes.find((outcome) => idOf(outcome) === taskId(task(2)));
    expect(again).toMatchObject({ requests: 2 });
  });

  it('a queue keeps the rate limit, retries included', async () => {
    const intervalMs = 40;
    const answer: BeforeResponse = (_, nth) => {
      if (nth === 1) throw unavailable();
    };
    const { source, queue, count } = await start(answer, { concurrency: 4, intervalMs });
    const since = clock.now();
    await queue.add(pages(1, 4));
    await count(4);
    expect(source.requests).toHaveLength(8);
    expect(Math.max(...source.requests.map(({ at }) => at)) - since).toBeGreaterThanOrEqual(7 * intervalMs - 1);
  });

  it('a queue keeps exactly as many requests in flight as its concurrency allows', async () => {
    const gate = createGate();
    const full = createGate();
    let most = 0;
    const answer = async (): Promise<void> => {
      most = Math.max(most, source.inFlight());
      if (most === 3) full.open();
      await gate.passed;
    };
    const { source, queue, count } = await start(answer, { concurrency: 3 });
    await queue.add(pages(1, 9));
    await full.passed;
    gate.open();
    await count(9);
    expect(most).toBe(3);
  });

  it('a queue drops the waiting tasks of a run', async () => {
    const { asked, gate, answer } = heldAnswer();
    const { source, queue, outcomes, count } = await start(answer);
    await queue.add([...pages(1, 5), task(1, { runId: 11 })]);
    await asked.passed;
    await queue.drop(1);
    gate.open();
    await count(2);
    expect(ids(outcomes)).toEqual([taskId(task(1)), taskId(task(1, { runId: 11 }))]);
    expect(source.requests).toHaveLength(2);
  });

  it('a queue reads lost tasks when they are added again', async () => {
    const { asked, gate, answer } = heldAnswer();
    const { queue, lose, outcomes, count } = await start(answer);
    await queue.add(pages(1, 4));
    await asked.passed;
    await lose();
    await queue.add(pages(2, 4));
    gate.open();
    await count(4);
    expect(ids(outcomes).sort()).toEqual(pages(1, 4).map(taskId));
  });

  it('a queue finishes the current outcome when closed, abandons tasks in flight and delivers nothing afterwards', async () => {
    const [gate, handling, asked, aborted] = [createGate(), createGate(), createGate(), createGate()];
    const answer: BeforeResponse = async ({ window }, _, signal) => {
      if (window.page === 1) return;
      asked.open();
      await untilAborted(signal).finally(() => aborted.open());
    };
    let finished = false;
    const handle = async (): Promise<void> => {
      handling.open();
      await gate.passed;
      finished = true;
    };
    const { source, queue, close, outcomes } = await start(answer, { concurrency: 2, handle });
    await queue.add(pages(1, 3));
    await Promise.all([handling.passed, asked.passed]);
    const closed = close().then(() => finished);
    await aborted.passed;
    expect(finished).toBe(false);
    gate.open();
    expect(await closed).toBe(true);
    await queue.close();
    await queue.add(pages(4, 5));
    await turn();
    expect(ids(outcomes)).toEqual([taskId(task(1))]);
    expect(source.inFlight()).toBe(0);
  });
}
