import { setMaxListeners } from 'node:events';
import { retryDelayMs } from '../backoff.ts';
import { type FetchOutcome, type FetchTask, taskId } from '../catalog/page.ts';
import type { Clock } from '../clock.ts';
import { CatchwordError, toErrorRecord } from '../errors.ts';
import { errorFields, type Logger } from '../log.ts';
import type { Pacer } from '../pace/pacer.ts';
import { type PageQueue, type ReadWindow, toReadError } from './queue.ts';

interface EmbeddedQueueOptions {
  readonly read: ReadWindow;
  /** Maximum number of requests in flight, those that wait for a retry included. */
  readonly concurrency: number;
  /** Delays requests to keep the rate limit and the pauses that the source asks for. */
  readonly pacer: Pacer;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called before a retry whose delay the source did not ask for. */
  readonly onRetry?: (error: CatchwordError, delayMs: number) => void;
}

/**
 * Pages that may be validated, or wait to be delivered, besides those that are being read, and their bytes. Limits memory;
 * while pages are written, which takes a while, the next ones are validated.
 */
const AHEAD = 24;
const AHEAD_BYTES = 8_000_000;

/** Creates a queue inside the process. Nothing in it needs to survive: SQLite knows which windows are missing. */
export function createEmbeddedQueue(options: EmbeddedQueueOptions): PageQueue {
  const { read, concurrency, pacer, clock, log, onRetry } = options;
  const waiting = new Map<string, FetchTask>();
  const active = new Map<string, Promise<void>>();
  /** Tasks that have a request in flight, or may make one. */
  const reading = new Set<string>();
  const inLine: (() => void)[] = [];
  /** Bytes of each page that has arrived and is not delivered yet, and of all of them. */
  const held = new Map<string, number>();
  let heldBytes = 0;
  const stop = new AbortController();
  // Each active task adds a listener.
  setMaxListeners(0, stop.signal);
  let handle: ((outcome: FetchOutcome) => Promise<void>) | undefined;
  let delivered = Promise.resolve();

  async function mayRead(id: string): Promise<void> {
    if (reading.has(id)) return;
    while (reading.size >= concurrency && !stop.signal.aborted) await new Promise<void>((go) => inLine.push(go));
    reading.add(id);
  }

  function hold(id: string, bytes: number): void {
    heldBytes += bytes - (held.get(id) ?? 0);
    held.set(id, bytes);
  }

  function endReading(id: string): void {
    if (!reading.delete(id)) return;
    const next = inLine.shift();
    if (next === undefined) fill();
    else next();
  }

  /** Retries until there is an outcome; null if the queue was closed. */
  async function readUntilDone(task: FetchTask): Promise<FetchOutcome | null> {
    for (let attempt = 1; ; attempt++) {
      try {
        await mayRead(taskId(task));
        await pacer.acquire(stop.signal);
        const { page, response } = await read(task, stop.signal, attempt, (bytes) => {
          hold(taskId(task), bytes);
          endReading(taskId(task));
        });
        pacer.succeeded();
        return { kind: 'captured', captured: { task, page, response, requests: attempt } };
      } catch (thrown) {
        if (stop.signal.aborted) return null;
        const error = toReadError(thrown);
        const askedMs = error.retryAfterMs ?? 0;
        pacer.heed(error);
        const delayMs = retryDelayMs(error, attempt, task.maxAttempts, () => clock.random());
        if (delayMs === null) return { kind: 'failed', task, error: toErrorRecord(error), requests: attempt };
        if (error.retryAfterMs === undefined) onRetry?.(error, delayMs);
        log.warn({ task: taskId(task), attempt, delayMs, code: error.code, reason: error.message }, 'retrying page');
        // The pacer waits for as long as the source asked, because an operator may end that pause.
        await clock.sleep(delayMs - askedMs, stop.signal).catch(() => {});
        if (stop.signal.aborted) return null;
      }
    }
  }

  async function deliver(outcome: FetchOutcome): Promise<void> {
    if (stop.signal.aborted) return;
    try {
      await handle?.(outcome);
    } catch (error) {
      log.error(errorFields(error), 'a fetched page was not applied');
    }
  }

  async function work(task: FetchTask): Promise<void> {
    const outcome = await readUntilDone(task);
    if (outcome === null) return;
    delivered = delivered.then(() => deliver(outcome));
    await delivered;
  }

  function fill(): void {
    for (const [id, task] of waiting) {
      const isAhead = active.size - reading.size >= AHEAD || heldBytes >= AHEAD_BYTES;
      const isFull = reading.size >= concurrency || isAhead;
      if (handle === undefined || isFull) return;
      waiting.delete(id);
      reading.add(id);
      const done = work(task).finally(() => {
        active.delete(id);
        hold(id, 0);
        held.delete(id);
        endReading(id);
        fill();
      });
      active.set(id, done);
    }
  }

  return {
    add: async (tasks) => {
      if (stop.signal.aborted) return;
      for (const task of tasks) {
        const id = taskId(task);
        if (!active.has(id) && !waiting.has(id)) waiting.set(id, task);
      }
      fill();
    },
    consume: async (consumer) => {
      handle = consumer;
      fill();
    },
    rest: async () => {
      handle = undefined;
      await delivered;
    },
    drop: async (runId) => {
      for (const [id, task] of waiting) if (task.runId === runId) waiting.delete(id);
    },
    close: async () => {
      waiting.clear();
      stop.abort(new CatchwordError('INTERRUPTED', 'the queue was closed'));
      for (const go of inLine.splice(0)) go();
      await Promise.all(active.values());
    },
  };
}
