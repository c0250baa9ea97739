import type { FetchTask, Window } from '../catalog/page-types.ts';
import { createFixedPlan, createListPlan, type PassPlan } from '../proof/plan.ts';
import type { Pass } from '../store/rows/runs.ts';
import type { Reader } from '../store/schema/reader.ts';
import { assessRun, repairsOf } from './evidence.ts';

/** Maximum products that one run looks up, to bound its requests. */
const LOOKUPS = 200;
const CONTROL_EVERY = 5;
/** A lookup is only a hint: if it fails, the run continues without. */
const LOOKUP_ATTEMPTS = 3;

/** Which windows a pass reads, and what it adds to the task of each. */
interface PlannedPass {
  readonly plan: PassPlan;
  readonly taskOf: (window: Window) => Partial<FetchTask>;
}

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
function plannedLookups(store: Reader, pass: Pass): PlannedPass {
  const unseen = store.removals.unseen(assessRun(store, pass.runId, pass.pass).seen);
  // Starts elsewhere in each run: products that lookups find, but lists do not show, must not crowd out the others.
  const from = (pass.runId * LOOKUPS) % Math.max(1, unseen.length);
  const turn = [...unseen.slice(from), ...unseen.slice(0, from)].slice(0, LOOKUPS);
  const [last, ...controls] = controlsOf(store, pass, Math.ceil(turn.length / CONTROL_EVERY) + 1);
  const between = turn.flatMap((id, at) => (at % CONTROL_EVERY === 0 ? [controls[at / CONTROL_EVERY], id] : [id]));
  const ids = [...between, last].filter((id) => id !== undefined);
  return {
    plan: createFixedPlan(ids.map((id) => ({ page: id, perPage: 1 }))),
    taskOf: ({ page }) => ({ vbid: store.removals.living(page)?.vbid ?? '', maxAttempts: LOOKUP_ATTEMPTS }),
  };
}

/**
 * Depends on the passes before this one, so that a resumed pass has the same plan. Repairs and lookups also depend on what
 * the mirror knows meanwhile: a resumed one may read more windows.
 */
export function planPass(store: Reader, pass: Pass): PlannedPass {
  const taskOf = (): Partial<FetchTask> => ({});
  if (pass.kind === 'lookup') return plannedLookups(store, pass);
  if (pass.kind === 'repair') {
    const { lists } = assessRun(store, pass.runId, pass.pass);
    const list = lists.find((read) => read.pass.pass === pass.root);
    return { plan: createFixedPlan(list === undefined ? [] : repairsOf(list)), taskOf };
  }
  const list = pass.reversed ? { ...pass, foundLength: store.runs.heldUpTo(pass.runId, pass.pass) } : pass;
  return { plan: createListPlan(list), taskOf };
}
