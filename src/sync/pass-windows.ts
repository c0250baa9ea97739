import type { CatchwordError } from '@catchword/base/errors';
import { type CapturedPage, type FetchTask, type Window, windowKey } from '@catchword/catalog/page-types';
import { isUnreadable } from '@catchword/catalog/reasons';
import { createFixedPlan, createListPlan } from '../proof/plan.ts';
import type { Pass } from '../store/rows/runs.ts';
import type { Reader } from '../store/schema/reader.ts';
import type { Applied } from './apply-page.ts';
import { assessRun, repairsOf } from './evidence.ts';
import { endsReading } from './failed-window.ts';
import type { RunSettings } from './run-settings.ts';
import { createSourceAnswers, PROBE_ATTEMPTS } from './source-answers.ts';
import { createUnreadWindows } from './unread-windows.ts';

/** Maximum products that one run looks up, to bound its requests. */
const LOOKUPS = 200;
/** A lookup is only a hint: if it fails, the run continues without. */
const LOOKUP_ATTEMPTS = 3;

/** Living products that the run has just seen in its list; at most `count`. */
function controlsOf(store: Reader, pass: Pass, count: number): number[] {
  const list = store.runs
    .passes(pass.runId)
    .findLast(({ kind, pass: number }) => kind === 'list' && number < pass.pass);
  const controls = new Set<number>();
  for (const window of list === undefined ? [] : store.runs.checkpoints(list.runId, list.pass)) {
    for (const id of store.runs.idsOf(window.runId, window.pass, window)) {
      if (controls.size >= count) return [...controls];
      if (id > 0 && store.removals.living(id) !== undefined) controls.add(id);
    }
  }
  return [...controls];
}

/** Lookups of unseen products, between others that must find a product: only these show that the lookup works. */
function plannedLookups(store: Reader, pass: Pass) {
  const unseen = store.removals.unseen(assessRun(store, pass.runId, pass.pass).seen);
  // Starts elsewhere in each run: products that lookups find, but lists do not show, must not crowd out the others.
  const from = (pass.runId * LOOKUPS) % Math.max(1, unseen.length);
  const turn = [...unseen.slice(from), ...unseen.slice(0, from)].slice(0, LOOKUPS);
  const [last, ...controls] = controlsOf(store, pass, turn.length + 1);
  const ids = [...turn.flatMap((id, at) => [controls[at], id]), last].filter((id) => id !== undefined);
  return {
    plan: createFixedPlan(ids.map((id) => ({ page: id, perPage: 1 }))),
    taskOf: ({ page }: Window) => ({ vbid: store.removals.living(page)?.vbid ?? '', maxAttempts: LOOKUP_ATTEMPTS }),
  };
}

/**
 * Which windows a pass reads, and what it adds to their tasks. Depends on the passes before it, so that a resumed pass has the
 * same plan. Repairs and lookups also depend on what the mirror knows meanwhile: a resumed one may read more windows.
 */
function planPass(store: Reader, pass: Pass) {
  const taskOf = () => ({});
  if (pass.kind === 'lookup') return plannedLookups(store, pass);
  if (pass.kind === 'repair') {
    const { lists } = assessRun(store, pass.runId, pass.pass);
    const list = lists.find((read) => read.pass.pass === pass.root);
    return { plan: createFixedPlan(list === undefined ? [] : repairsOf(list)), taskOf };
  }
  const list = pass.reversed ? { ...pass, foundLength: store.runs.heldUpTo(pass.runId, pass.pass) } : pass;
  return { plan: createListPlan(list), taskOf };
}

/** New windows are requested when this part of the lookahead is free: each request takes round trips to Redis. */
const LEAST_PART = 4;

/**
 * The windows of a pass, and where each one is.
 *
 * ```
 *   missing ── request ──► pending ── arrive ──► arrived ── noteApplied ──► read
 *                (queue)      │       (applier's batch)       (checkpoint)
 *                             ├─ giveUp (a lookup or a repair that failed)
 *                             └─ fail ──► see unread-windows.ts
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
  const answers = createSourceAnswers(pass);
  const unread = createUnreadWindows(pass, answers, plan);
  let probe: FetchTask | null = null;
  /** Whether most products were new in the window that was applied last. */
  let filling = store.products.lastId() === 0;

  const isSourceAnswering = (): boolean => pass.pass > 0 || arrived.size + read.size > 0;

  function taskOf(window: Window): FetchTask {
    const answered = isSourceAnswering();
    const maxAttempts = unread.attempts(window) ?? (answered ? limits.maxAttempts : limits.firstAttempts);
    const about = { mirror: store.incarnation, runId, pass: pass.pass, window, from, filling, answered, maxAttempts };
    return { ...about, ...lookUp(window) };
  }

  function noteApplied(window: Applied): void {
    const key = windowKey(window);
    arrived.delete(key);
    read.add(key);
    if (window.items > 0) filling = 2 * window.created > window.items;
    if (!isUnreadable(window.doubt)) unread.succeeded(window);
    // A product that cannot be read does not end the list.
    else if (!endsReading(window.doubt)) return;
    plan.note(window);
  }

  return {
    /** Whether the source has answered a request of the pass, or one of those to come is narrower. */
    isBegun: () => arrived.size + read.size + unread.pieces().length > 0,
    get size() {
      return plan.size;
    },
    pending: (): FetchTask[] => [...pending.values(), ...(probe === null ? [] : [probe])],
    /** Whether windows wait in the applier's batch. */
    hasArrived: () => arrived.size > 0,
    isPlanned: (window: Window) => plan.has(window) || unread.isPiece(window),
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
      if (answers.isDoubtful() && probe === null) {
        const { window, from } = answers.probe();
        probe = { ...taskOf(window), from, maxAttempts: PROBE_ATTEMPTS };
        return [probe];
      }
      if (probe !== null) return [];
      const taken = (key: string) =>
        [pending, arrived, givenUp, read].some((keys) => keys.has(key)) || unread.skips(key);
      const pieces = unread.pieces().filter((window) => !taken(windowKey(window)));
      const free = limits.lookahead - pending.size - pieces.length;
      const isWaiting = unread.isFull() || free < limits.lookahead / LEAST_PART;
      // One lookup vouches for the next by their order: see sweep.ts.
      const wanted = pass.kind === 'lookup' ? 1 - pending.size : isWaiting ? 0 : free;
      const tasks = [...pieces, ...plan.missing(wanted, taken)].map(taskOf);
      for (const task of tasks) pending.set(windowKey(task.window), task);
      return tasks;
    },
    /** @returns whether the task only asks whether the source answers. Throws as `noteProbe` in source-answers.ts */
    takeProbe: ({ window, from }: FetchTask, error: CatchwordError | null): boolean => {
      if (probe === null || from !== probe.from || windowKey(window) !== windowKey(probe.window)) return false;
      probe = null;
      answers.noteProbe(error);
      return true;
    },
    fail: (window: Window, error: CatchwordError): boolean => {
      if (!unread.fail(window, error, isSourceAnswering())) return false;
      pending.delete(windowKey(window));
      return true;
    },
    isPiece: unread.isPiece,
    decide: unread.decide,
    arrive: ({ task: { window }, page, response }: CapturedPage): void => {
      const { requestedAt } = response;
      pending.delete(windowKey(window));
      arrived.add(windowKey(window));
      // Noted before it is applied, which may take a while: a window that shows the end of the list ends the planning.
      const known = { ...page.envelope, ...window, requestedAt, items: page.items.count, doubt: page.doubt };
      unread.succeeded(known);
      plan.note(known);
    },
    giveUp: (window: Window): void => {
      pending.delete(windowKey(window));
      givenUp.add(windowKey(window));
    },
    noteApplied,
    /** Notes that the list ends before the window. */
    endAt: (window: Applied): void => plan.note({ ...window, items: 0 }),
    noteCheckpoints: (): void => {
      for (const window of store.runs.checkpoints(runId, pass.pass)) noteApplied(window);
    },
  };
}

export type PassWindows = ReturnType<typeof createPassWindows>;
