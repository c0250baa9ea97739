import { setMaxListeners } from 'node:events';
import { retryDelayMs } from '../backoff.ts';
import type { FetchOutcome, FetchTask } from '../catalog/page.ts';
import { taskId } from '../catalog/page.ts';
import type { Clock } from '../clock.ts';
import { CatchwordError, toErrorRecord } from '../errors.ts';
import { errorFields, type Logger } from '../log.ts';
import type { Pacer } from '../pacer.ts';
import type { PageQueue, ReadWindow } from './queue.ts';
import { readError } from './read-error.ts';

export interface EmbeddedQueueOptions {
  readonly read: ReadWindow;
  /** Tasks in hand at most: being read, waiting for another try, or waiting to be handed over. Bounds memory. */
  readonly concurrency: number;
  /** Every request passes it. It keeps the pauses that the source asks for. */
  readonly pacer: Pacer;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called before a page is retried after `delayMs` that the source did not ask for. */
  readonly onRetry?: (error: CatchwordError, delayMs: number) => void;
}

/** The queue inside the process. It holds nothing that must survive: what is missing is known from SQLite. */
export function createEmbeddedQueue(options: EmbeddedQueueOptions): PageQueue {
  const { read, concurrency, pacer, clock, log, onRetry } = options;
  const waiting = new Map<string, FetchTask>();
  const inHand = new Map<string, Promise<void>>();
  const stop = new AbortController();
  // Each page in hand listens to it.
  setMaxListeners(0, stop.signal);
  let handle: ((outcome: FetchOutcome) => Promise<void>) | undefined;
  let handedOver = Promise.resolve();

  /** Null when it was stopped. */
  async function readUntilDone(task: FetchTask): Promise<FetchOutcome | null> {
    for (let attempt = 1; ; attempt++) {
      try {
        await pacer.acquire(stop.signal);
        const { page, response } = await read(task, stop.signal, attempt);
        return { kind: 'captured', captured: { task, page, response, requests: attempt } };
      } catch (thrown) {
        if (stop.signal.aborted) return null;
        const error = readError(thrown);
        const askedMs = error.retryAfterMs ?? 0;
        if (askedMs > 0) pacer.blockUntil(clock.now() + askedMs);
        const delayMs = retryDelayMs(error, attempt, task.maxAttempts, () => clock.random());
        if (delayMs === null) return { kind: 'failed', task, error: toErrorRecord(error), requests: attempt };
        if (error.retryAfterMs === undefined) onRetry?.(error, delayMs);
        log.warn({ task: taskId(task), attempt, delayMs, code: error.code, reason: error.message }, 'reading again');
        // The pacer waits for what the source asked for, and not longer: an operator may end that.
        await clock.sleep(delayMs - askedMs, stop.signal).catch(() => {});
        if (stop.signal.aborted) return null;
      }
    }
  }

  async function handOver(outcome: FetchOutcome): Promise<void> {
    if (stop.signal.aborted) return;
    try {
      await handle?.(outcome);
    } catch (error) {
      log.error(errorFields(error), 'an outcome was not accepted');
    }
  }

  async function work(task: FetchTask): Promise<void> {
    const outcome = await readUntilDone(task);
    if (outcome === null) return;
    handedOver = handedOver.then(() => handOver(outcome));
    await handedOver;
  }

  function fill(): void {
    for (const [id, task] of waiting) {
      if (handle === undefined || inHand.size >= concurrency) return;
      waiting.delete(id);
      const done = work(task).finally(() => {
        inHand.delete(id);
        fill();
      });
      inHand.set(id, done);
    }
  }

  return {
    add: async (tasks) => {
      if (stop.signal.aborted) return;
      for (const task of tasks) {
        const id = taskId(task);
        if (!inHand.has(id) && !waiting.has(id)) waiting.set(id, task);
      }
      fill();
    },
    consume: async (consumer) => {
      handle = consumer;
      fill();
    },
    drop: async (runId) => {
      for (const [id, task] of waiting) if (task.runId === runId) waiting.delete(id);
    },
    close: async () => {
      waiting.clear();
      stop.abort(new CatchwordError('INTERRUPTED', 'the queue was closed'));
      await Promise.all(inHand.values());
    },
  };
}
