import { setMaxListeners } from 'node:events';
import { CatchwordError } from '@catchword/base/errors';
import { errorFields, type Tell } from '@catchword/base/log';
import { type FetchOutcome, type FetchTask, taskId } from '@catchword/catalog/page-types';
import { createInFlight } from '@catchword/pace/in-flight';
import type { PageQueue } from './queue-port.ts';
import { type ReadOptions, readUntilDone } from './read-until-done.ts';

interface EmbeddedQueueOptions extends Omit<ReadOptions, 'inFlight'> {
  /** Maximum number of requests in flight, including requests that wait for a retry. */
  readonly concurrency: number;
  /** Gets a notice when the source has refused so many at once; default: no notice. */
  readonly tell?: Tell;
}

/**
 * Pages that may be validated, or wait to be delivered, besides pages that are being read, and their bytes. Limits memory;
 * while pages are written, which takes a while, the next ones are validated.
 */
const AHEAD = 24;
const AHEAD_BYTES = 16_000_000;

/** Creates a queue inside the process. Nothing in it needs to survive: SQLite knows which windows are missing. */
export function createEmbeddedQueue(options: EmbeddedQueueOptions): PageQueue {
  const { concurrency, log, tell = () => {} } = options;
  const reading = { ...options, inFlight: createInFlight(concurrency, tell) };
  const waiting = new Map<string, FetchTask>();
  const active = new Map<string, Promise<void>>();
  const slots = createSlots(concurrency, fill);
  const stop = new AbortController();
  // Each active task adds a listener.
  setMaxListeners(0, stop.signal);
  let handle: ((outcome: FetchOutcome) => Promise<void>) | undefined;
  let delivered = Promise.resolve();

  async function deliver(outcome: FetchOutcome): Promise<void> {
    if (stop.signal.aborted) return;
    try {
      await handle?.(outcome);
    } catch (error) {
      log.error(errorFields(error), 'a fetched page was not applied');
    }
  }

  async function work(task: FetchTask): Promise<void> {
    const id = taskId(task);
    const slot = { take: () => slots.take(id, stop.signal), hold: (bytes: number) => slots.free(id, bytes) };
    const outcome = await readUntilDone(task, reading, stop.signal, slot);
    if (outcome === null) return;
    delivered = delivered.then(() => deliver(outcome));
    await delivered;
  }

  function fill(): void {
    for (const [id, task] of waiting) {
      if (handle === undefined || !slots.takeFree(id)) return;
      waiting.delete(id);
      const done = work(task).finally(() => {
        active.delete(id);
        slots.free(id, null);
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
      slots.wake();
      await Promise.all(active.values());
    },
  };
}

/**
 * The slots of tasks that have a request in flight, or may make one, and the bytes of pages that have arrived and are not
 * delivered yet. `onFree` is called when a slot is free and no task that needs one again waits for it.
 */
function createSlots(concurrency: number, onFree: () => void) {
  /** Each task until it is delivered: `reading` while it has a slot, then the bytes of its page. */
  const tasks = new Map<string, number | 'reading'>();
  const inLine: (() => void)[] = [];
  const pages = (): number[] => [...tasks.values()].filter((one) => one !== 'reading');
  const isFull = (): boolean => tasks.size - pages().length >= concurrency;

  return {
    /** Takes a slot for a new task, unless none is free or as much as allowed is ahead. */
    takeFree: (id: string): boolean => {
      const bytes = pages();
      const isAhead = bytes.length >= AHEAD || bytes.reduce((sum, one) => sum + one, 0) >= AHEAD_BYTES;
      if (isAhead || isFull()) return false;
      tasks.set(id, 'reading');
      return true;
    },
    /** Waits for a slot, if the task has none, until `signal` is aborted and `wake` is called. */
    take: async (id: string, signal: AbortSignal): Promise<void> => {
      if (tasks.get(id) === 'reading') return;
      tasks.set(id, 0);
      while (isFull() && !signal.aborted) await new Promise<void>((go) => inLine.push(go));
      tasks.set(id, 'reading');
    },
    /** Frees the slot of a task: its page has arrived, or the task is over (null). */
    free: (id: string, bytes: number | null): void => {
      const wasReading = tasks.get(id) === 'reading';
      if (bytes === null) tasks.delete(id);
      else tasks.set(id, bytes);
      if (!wasReading) return;
      const next = inLine.shift();
      if (next === undefined) onFree();
      else next();
    },
    wake: (): void => {
      for (const go of inLine.splice(0)) go();
    },
  };
}
