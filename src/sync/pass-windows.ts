import { type CapturedPage, type FetchTask, type Window, windowKey } from '../catalog/page.ts';
import type { Reader } from '../store/reader.ts';
import type { Pass } from '../store/runs.ts';
import type { Applied } from './apply-page.ts';
import { planPass } from './plan-pass.ts';
import type { RunSettings } from './run-settings.ts';

/**
 * The windows of a pass, and where each one is.
 *
 * ```
 *   missing ── request ──► pending ── arrive ──► arrived ── noteApplied ──► read
 *                (queue)      │       (applier's batch)       (checkpoint)
 *                             └─ giveUp (a lookup that failed)
 * ```
 * The checkpoints in SQLite show which windows are read, so a start and a resume are the same.
 */
export function createPassWindows(store: Reader, pass: Pass, limits: RunSettings) {
  const { runId, from } = pass;
  const { plan, taskOf: lookUp } = planPass(store, pass);
  const pending = new Map<string, FetchTask>();
  const arrived = new Set<string>();
  const givenUp = new Set<string>();
  const read = new Set<string>();
  /** Whether most products were new in the window that was applied last. */
  let filling = store.products.lastId() === 0;

  function taskOf(window: Window): FetchTask {
    const answered = pass.pass > 0 || arrived.size + read.size > 0;
    const maxAttempts = answered ? limits.maxAttempts : limits.firstAttempts;
    const about = { mirror: store.incarnation, runId, pass: pass.pass, window, from, filling, answered, maxAttempts };
    return { ...about, ...lookUp(window) };
  }

  function noteApplied(window: Applied): void {
    const key = windowKey(window);
    arrived.delete(key);
    read.add(key);
    if (window.items > 0) filling = 2 * window.created > window.items;
    plan.note(window);
  }

  return {
    /** Windows planned so far. */
    get size() {
      return plan.size;
    },
    pending: (): FetchTask[] => [...pending.values()],
    /** Whether windows wait in the applier's batch. */
    hasArrived: () => arrived.size > 0,
    isPlanned: (window: Window) => plan.has(window),
    isPending: (window: Window) => pending.has(windowKey(window)),
    /** Whether the pass needs no answer for the window any more. A queue may deliver a window twice. */
    isAnswered: (window: Window) => [arrived, read, givenUp].some((windows) => windows.has(windowKey(window))),
    /** The window before it in the list, if that is read. */
    readBefore: (window: Window): Window | undefined => {
      const before = plan.before(window);
      return before !== undefined && read.has(windowKey(before)) ? before : undefined;
    },
    /** Returns tasks for missing windows, as many as fit into the queue; these are pending from now on. */
    request: (): FetchTask[] => {
      const taken = (key: string) => pending.has(key) || arrived.has(key) || givenUp.has(key);
      const tasks = plan.missing(Math.max(0, limits.lookahead - pending.size), taken).map(taskOf);
      for (const task of tasks) pending.set(windowKey(task.window), task);
      return tasks;
    },
    arrive: ({ task: { window }, page, response }: CapturedPage): void => {
      const { requestedAt } = response;
      pending.delete(windowKey(window));
      arrived.add(windowKey(window));
      // Noted before it is applied, which may take a while: a window that shows the end of the list ends the planning.
      plan.note({ ...page.envelope, ...window, requestedAt, items: page.items.count, doubt: page.doubt });
    },
    giveUp: (window: Window): void => {
      pending.delete(windowKey(window));
      givenUp.add(windowKey(window));
    },
    noteApplied,
    /** Notes all windows that have a checkpoint. */
    noteCheckpoints: (): void => {
      for (const window of store.runs.checkpoints(runId, pass.pass)) noteApplied(window);
    },
  };
}

export type PassWindows = ReturnType<typeof createPassWindows>;
