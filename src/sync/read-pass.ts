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

/** How often unanswered tasks are added to the queue again, in case it lost them; milliseconds. */
const RECONCILE_MS = 5_000;

/** How long a page may wait in the applier's batch; milliseconds. */
const BATCH_AGE_MS = 10_000;

export interface PassSettings {
  /** Maximum windows in the queue. A limit for its memory, not for speed. */
  readonly lookahead: number;
  /** Maximum attempts of a request. */
  readonly maxAttempts: number;
  /** The same for the first request of a run, so that a wrong address or key shows soon. */
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
  /** Called for each window that was read. */
  readonly onRead: (captured: CapturedPage, windowsKnown: number) => void;
}

/** The error of a run that was told to stop. */
export function interruption(): CatchwordError {
  return new CatchwordError('INTERRUPTED', 'interrupted; the run resumes at the next start', {
    hint: 'Pages that were read are kept.',
  });
}

/** Receives the queue's outcomes while a pass is read. */
export interface PassReader {
  /** Never throws: errors reject `done`. */
  handle(outcome: FetchOutcome): void;
  /**
   * Resolves when every window of the pass has a checkpoint, or, with `answeredSize`, when the source answers pages of
   * another size than requested. Rejects with the error that ended the pass.
   */
  readonly done: Promise<{ readonly answeredSize: number | null }>;
}

function windowRead({ task: { window }, page, response }: CapturedPage): WindowRead {
  const { numItems, totalPages } = page.envelope;
  const { requestedAt } = response;
  return { ...window, numItems, totalPages, requestedAt, items: page.products.length, doubt: page.doubt };
}

/**
 * Reads a pass: repeatedly adds the missing windows to the queue and applies the pages that come back. Which windows
 * are missing is known from SQLite, so a start, a resume and a queue that lost its tasks are all handled the same way.
 */
export function readPass(pass: Pass, context: PassContext): PassReader {
  const { store, queue, clock, applier, log, settings, signal } = context;
  const { plan, taskOf: about } = planPass(store, pass);
  const read = new Set<string>();
  const noteProgress = watchProgress();
  /** Windows in the queue. */
  const pending = new Map<string, FetchTask>();
  /** Windows in the applier's batch. */
  const arrived = new Set<string>();
  /** Lookups that failed. */
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

  /** @throws CatchwordError PAGE_INVALID if the list continues without new products: otherwise it would never end */
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
        hint: 'The source may use other names for the page parameters: check CATCHWORD_PAGE_PARAM.',
      },
    );
  }

  /** Applies pages, and marks them as read. */
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

  /** The source ignores the requested page size: its pages are valid, but they are not the planned windows. */
  function resize({ page: { envelope }, task }: CapturedPage): void {
    if (answeredSize !== null || !pending.has(windowKey(task.window))) return;
    if (pass.sizeIgnored || envelope.perPage < 1) {
      end(
        new CatchwordError(
          'PAGE_INVALID',
          `requested ${task.window.perPage} products a page, got ${envelope.perPage}`,
          {
            retryable: false,
            hint: 'The source changes its page size between requests: set CATCHWORD_PER_PAGE to a size that it keeps.',
          },
        ),
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
    // A queue may deliver a window twice; the second one is ignored.
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
    // The window belongs to a plan that was replaced.
    if (!plan.has(task.window)) return;
    pending.delete(key);
    arrived.add(key);
    // Noted before it is applied, which may take a while: a window that shows the end of the list ends the planning.
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
        // Pages in the batch may show that the list continues.
        if (arrived.size === 0) return;
        note(() => applier.flush());
        // Pages that were not applied now had been applied before: they were delivered twice.
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
      // Timed by sleeping, not by the clock, which may be set back meanwhile.
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
