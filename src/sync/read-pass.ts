import { type CapturedPage, type FetchOutcome, type FetchTask, type Window, windowKey } from '../catalog/page.ts';
import { type WindowRead, windowsOfPass } from '../catalog/plan.ts';
import type { Clock } from '../clock.ts';
import { CatchwordError, fromErrorRecord } from '../errors.ts';
import type { PageQueue } from '../queue/queue.ts';
import type { Pass } from '../store/runs.ts';
import type { Store } from '../store/store.ts';
import type { Applied, Applier } from './apply-page.ts';

/** How often tasks that have not come back are handed to the queue again, in milliseconds: it may have lost them. */
const RECONCILE_MS = 5_000;

/** How long an applied page may wait for others that share its transaction, in milliseconds. */
const BATCH_AGE_MS = 10_000;

export interface PassSettings {
  /** Windows handed to the queue and not yet applied, at most. Bounds what a queue holds; for memory, not for speed. */
  readonly lookahead: number;
  /** Tries of a request before the run gives up. */
  readonly maxAttempts: number;
  /** The same for the very first request of a run: an address or a key that is wrong should show soon. */
  readonly firstAttempts: number;
}

export interface PassContext {
  readonly store: Store;
  readonly queue: PageQueue;
  readonly clock: Clock;
  readonly applier: Applier;
  readonly settings: PassSettings;
  readonly signal: AbortSignal;
  /** Called for each window that came back. */
  readonly onRead: (captured: CapturedPage, windowsKnown: number) => void;
}

/** What a run ends with that was told to stop. */
export function interruption(): CatchwordError {
  return new CatchwordError('INTERRUPTED', 'interrupted; the run goes on at the next start', {
    hint: 'Nothing that was read is lost.',
  });
}

/** Where a queue's outcomes go while a pass is read. */
export interface PassReader {
  /** Never throws: what goes wrong ends `done`. */
  handle(outcome: FetchOutcome): void;
  /** Resolves when every window of the pass has its checkpoint; rejects with what ended it. */
  readonly done: Promise<void>;
}

/**
 * Reads a pass: asks the plan what is missing, hands it to the queue, applies what comes back, until nothing is missing.
 * A start, a resume and the repair of a queue that forgot are the same step: what is missing is known from SQLite.
 */
export function readPass(pass: Pass, context: PassContext): PassReader {
  const { store, queue, clock, applier, settings, signal } = context;
  const read = new Map<string, WindowRead>();
  for (const window of store.runs.checkpoints(pass.runId, pass.pass)) read.set(windowKey(window), window);
  /** Handed to the queue and not back yet. */
  const pending = new Map<string, FetchTask>();
  /** Back, and in the applier's batch. */
  const arrived = new Set<string>();
  const ended = new AbortController();
  let wake = (): void => {};
  let failure: unknown;

  function end(error: unknown): void {
    failure ??= error;
    wake();
  }

  function taskOf(window: Window): FetchTask {
    const maxAttempts = read.size === 0 && pass.pass === 0 ? settings.firstAttempts : settings.maxAttempts;
    return { mirror: store.incarnation, runId: pass.runId, pass: pass.pass, window, from: pass.from, maxAttempts };
  }

  let planned: { reads: number; windows: Window[] } | undefined;
  function windows(): Window[] {
    if (planned?.reads !== read.size) {
      planned = { reads: read.size, windows: windowsOfPass([...read.values()], pass.perPage) };
    }
    return planned.windows;
  }

  function missing(): FetchTask[] {
    const tasks: FetchTask[] = [];
    for (const window of windows()) {
      if (pending.size + tasks.length >= settings.lookahead) break;
      const key = windowKey(window);
      if (!read.has(key) && !pending.has(key) && !arrived.has(key)) tasks.push(taskOf(window));
    }
    return tasks;
  }

  /** Takes note of what was applied. */
  function note(apply: () => readonly Applied[]): void {
    try {
      for (const checkpoint of apply()) {
        const key = windowKey(checkpoint);
        arrived.delete(key);
        read.set(key, checkpoint);
      }
      wake();
    } catch (error) {
      end(error);
    }
  }

  function handle(outcome: FetchOutcome): void {
    const task = outcome.kind === 'captured' ? outcome.captured.task : outcome.task;
    const key = windowKey(task.window);
    if (task.mirror !== store.incarnation || task.runId !== pass.runId || task.pass !== pass.pass) return;
    // A queue may deliver twice; of a window that is there already the second has nothing to say.
    if (failure !== undefined || arrived.has(key) || read.has(key)) return;
    if (outcome.kind === 'failed') {
      end(fromErrorRecord(outcome.error));
      return;
    }
    pending.delete(key);
    arrived.add(key);
    context.onRead(outcome.captured, windows().length);
    note(() => applier.take(outcome.captured));
  }

  async function loop(): Promise<void> {
    let reconcileAt = clock.now() + RECONCILE_MS;
    for (;;) {
      if (failure !== undefined) throw failure;
      const tasks = missing();
      if (tasks.length === 0 && pending.size === 0) {
        // What the batch holds may show that the list goes on.
        if (arrived.size === 0) return;
        note(() => applier.flush());
        continue;
      }
      for (const task of tasks) pending.set(windowKey(task.window), task);
      const woken = new Promise<void>((resolve) => {
        wake = resolve;
      });
      if (clock.now() >= reconcileAt) {
        await queue.add([...pending.values()]);
        reconcileAt = clock.now() + RECONCILE_MS;
      } else if (tasks.length > 0) {
        await queue.add(tasks);
      }
      await woken;
    }
  }

  async function tick(): Promise<void> {
    for (;;) {
      await clock.sleep(RECONCILE_MS, ended.signal);
      note(() => applier.flush(BATCH_AGE_MS));
    }
  }

  async function run(): Promise<void> {
    const onAbort = (): void => end(interruption());
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    const timer = tick().catch(() => {
      // Only `ended` stops it.
    });
    try {
      await loop();
    } finally {
      signal.removeEventListener('abort', onAbort);
      ended.abort();
      await timer;
    }
  }

  return { handle, done: run() };
}
