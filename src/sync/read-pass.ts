import { type CapturedPage, type FetchOutcome, type FetchTask, type Window, windowKey } from '../catalog/page.ts';
import { startOf, type WindowRead } from '../catalog/plan.ts';
import type { Clock } from '../clock.ts';
import { CatchwordError, fromErrorRecord } from '../errors.ts';
import type { Logger } from '../log.ts';
import type { PageQueue } from '../queue/queue.ts';
import type { Reader } from '../store/reader.ts';
import type { Pass } from '../store/runs.ts';
import type { Applied, Applier } from './apply-page.ts';
import { watchProgress } from './check-progress.ts';
import { planPass } from './plan-pass.ts';

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
  readonly store: Reader;
  readonly queue: PageQueue;
  readonly clock: Clock;
  readonly applier: Applier;
  readonly log: Logger;
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
  /**
   * Resolves when every window of the pass has its checkpoint, or, with the size that it answers, when the source turns
   * out to answer pages of another size than asked; rejects with what ended it.
   */
  readonly done: Promise<{ readonly answeredSize: number | null }>;
}

function windowRead({ task: { window }, page, response }: CapturedPage): WindowRead {
  const { numItems, totalPages } = page.envelope;
  const { requestedAt } = response;
  return { ...window, numItems, totalPages, requestedAt, items: page.products.length, doubt: page.doubt };
}

/**
 * Reads a pass: asks the plan what is missing, hands it to the queue, applies what comes back, until nothing is missing.
 * A start, a resume and the repair of a queue that forgot are the same step: what is missing is known from SQLite.
 */
export function readPass(pass: Pass, context: PassContext): PassReader {
  const { store, queue, clock, applier, log, settings, signal } = context;
  const { plan, taskOf: about } = planPass(store, pass);
  const read = new Set<string>();
  const noteProgress = watchProgress();
  /** Handed to the queue and not back yet. */
  const pending = new Map<string, FetchTask>();
  /** Back, and in the applier's batch. */
  const arrived = new Set<string>();
  /** Lookups that came to nothing. */
  const givenUp = new Set<string>();
  const ended = new AbortController();
  let wake = (): void => {};
  let isReconcileDue = false;
  let failure: unknown;
  let answeredSize: number | null = null;

  function noteCheckpoints(): void {
    for (const window of store.runs.checkpoints(pass.runId, pass.pass)) {
      read.add(windowKey(window));
      arrived.delete(windowKey(window));
      plan.note(window);
    }
  }

  function end(error: unknown): void {
    failure ??= error;
    wake();
  }

  function taskOf(window: Window): FetchTask {
    const maxAttempts = read.size === 0 && pass.pass === 0 ? settings.firstAttempts : settings.maxAttempts;
    const { runId, pass: number, from } = pass;
    return { mirror: store.incarnation, runId, pass: number, window, from, maxAttempts, ...about(window) };
  }

  function missing(): FetchTask[] {
    const taken = (key: string) => pending.has(key) || arrived.has(key) || givenUp.has(key);
    return plan.missing(Math.max(0, settings.lookahead - pending.size), taken).map(taskOf);
  }

  /** @throws CatchwordError PAGE_INVALID where the list goes on without anything new: else it would never end */
  function checkProgress(window: Applied): void {
    if (pass.kind === 'repair' || pass.kind === 'lookup') return;
    const ids = store.runs.idsOf(pass.runId, pass.pass, window);
    noteProgress(ids);
    if (window.items === 0 || startOf(window) < window.numItems || window.page === 1) return;
    const before = plan.before(window);
    if (before === undefined || !read.has(windowKey(before))) return;
    const known = new Set(store.runs.idsOf(pass.runId, pass.pass, before));
    if (ids.some((id) => !known.has(id))) return;
    throw new CatchwordError(
      'PAGE_INVALID',
      `page ${window.page} repeats the one before it, beyond the end of the list`,
      {
        retryable: false,
        hint: 'The source does not seem to know pages by the names it was asked with: see CATCHWORD_PAGE_PARAM.',
      },
    );
  }

  /** Takes note of what was applied. */
  function note(apply: () => readonly Applied[]): void {
    try {
      for (const checkpoint of apply()) {
        const key = windowKey(checkpoint);
        arrived.delete(key);
        read.add(key);
        plan.note(checkpoint);
        checkProgress(checkpoint);
      }
      wake();
    } catch (error) {
      end(error);
    }
  }

  /** The source answers in a size of its own. Its pages are good, but they are not the windows that were asked for. */
  function resize({ page: { envelope }, task }: CapturedPage): void {
    if (answeredSize !== null || !pending.has(windowKey(task.window))) return;
    if (pass.sizeIgnored || envelope.perPage < 1) {
      end(
        new CatchwordError('PAGE_INVALID', `asked for ${task.window.perPage} a page, got ${envelope.perPage}`, {
          retryable: false,
          hint: 'The source changes the size of its pages while it is read: set CATCHWORD_PER_PAGE to one that it keeps.',
        }),
      );
      return;
    }
    answeredSize = envelope.perPage;
    wake();
  }

  function fail({ task, error }: FetchOutcome & { kind: 'failed' }): void {
    const key = windowKey(task.window);
    if (pass.kind !== 'lookup' || error.code === 'INTERRUPTED') {
      end(fromErrorRecord(error));
      return;
    }
    log.warn({ vbid: task.vbid, code: error.code, reason: error.message }, 'a product could not be looked up');
    pending.delete(key);
    givenUp.add(key);
    wake();
  }

  function handle(outcome: FetchOutcome): void {
    const task = outcome.kind === 'captured' ? outcome.captured.task : outcome.task;
    const key = windowKey(task.window);
    if (task.mirror !== store.incarnation || task.runId !== pass.runId || task.pass !== pass.pass) return;
    // A queue may deliver twice; of a window that is there already the second has nothing to say.
    if (failure !== undefined || arrived.has(key) || read.has(key) || givenUp.has(key)) return;
    if (outcome.kind === 'failed') {
      fail(outcome);
      return;
    }
    const { captured } = outcome;
    if (captured.page.envelope.perPage !== task.window.perPage) {
      resize(captured);
      return;
    }
    // Asked for under a plan that was given up.
    if (!plan.has(task.window)) return;
    pending.delete(key);
    arrived.add(key);
    // Before it is applied, which others may be waited for: a window that shows the end of the list ends the asking.
    plan.note(windowRead(captured));
    context.onRead(captured, plan.size);
    note(() => applier.take(captured));
  }

  async function loop(): Promise<void> {
    for (;;) {
      if (failure !== undefined) throw failure;
      if (answeredSize !== null) {
        note(() => applier.flush());
        if (failure !== undefined) throw failure;
        return;
      }
      const tasks = missing();
      if (tasks.length === 0 && pending.size === 0) {
        // What the batch holds may show that the list goes on.
        if (arrived.size === 0) return;
        note(() => applier.flush());
        // What was not applied now had been before: it was delivered twice.
        if (arrived.size > 0) noteCheckpoints();
        continue;
      }
      for (const task of tasks) pending.set(windowKey(task.window), task);
      const woken = new Promise<void>((resolve) => {
        wake = resolve;
      });
      if (isReconcileDue) {
        isReconcileDue = false;
        await queue.add([...pending.values()]);
      } else if (tasks.length > 0) {
        await queue.add(tasks);
      }
      await woken;
    }
  }

  async function tick(): Promise<void> {
    for (;;) {
      await clock.sleep(RECONCILE_MS, ended.signal);
      // By what was slept, not by the time of day, which may be set back meanwhile.
      isReconcileDue = true;
      note(() => applier.flush(BATCH_AGE_MS));
    }
  }

  async function run(): Promise<{ answeredSize: number | null }> {
    const onAbort = (): void => end(interruption());
    if (signal.aborted) onAbort();
    noteCheckpoints();
    signal.addEventListener('abort', onAbort, { once: true });
    const timer = tick().catch(() => {
      // Only `ended` stops it.
    });
    try {
      await loop();
      return { answeredSize };
    } finally {
      signal.removeEventListener('abort', onAbort);
      ended.abort();
      await timer;
    }
  }

  return { handle, done: run() };
}
