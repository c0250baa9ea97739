import { isWithdrawnBody } from '../catalog/product.ts';
import type { Run } from '../catalog/run.ts';
import type { Reader } from '../store/reader.ts';
import { type Assessment, type Conclusion, newestList, newestTotal } from './assess-run.ts';
import { controlOf } from './plan-pass.ts';

/**
 * The end of a full run: what becomes of products that it did not see.
 *
 * A sealed run has proven that they are gone. An open one has not: there they are *missing*, and go when a point lookup
 * says so or when several full runs in a row, each of which read as many products as the source says there are, did not
 * see them. More unexpected removals than the limit are not made but held, whatever the proof: an operator decides.
 */
export interface SweepSettings {
  readonly removalLimit: { readonly percent?: number | undefined; readonly products?: number | undefined };
  /** Full runs in a row. */
  readonly confirmations: number;
}

export interface Sweep {
  readonly missing: readonly number[];
  readonly remove: readonly number[];
  /** Why the removals are held; null where they are made. */
  readonly holdReason: string | null;
}

/** A share of a small mirror is a handful, and a handful changes any day. */
const LIMIT_LEAST = 100;

/** Unexpected removals that are made without asking. */
export function removalLimitOf({ removalLimit }: Pick<SweepSettings, 'removalLimit'>, living: number): number {
  if (removalLimit.products !== undefined) return removalLimit.products;
  return Math.max(LIMIT_LEAST, Math.floor(((removalLimit.percent ?? 0) / 100) * living));
}

/** A product that was announced as withdrawn was expected to go. */
function expected(store: Reader, id: number): boolean {
  const body = store.removals.candidate(id)?.body;
  return body !== undefined && isWithdrawnBody(body);
}

/** Products of which a lookup said that there are none; of no use unless it found a product that is there. */
function lookedUpInVain(store: Reader, run: Run): ReadonlySet<number> {
  const gone = new Set<number>();
  for (const pass of store.runs.passes(run.id)) {
    if (pass.kind !== 'lookup') continue;
    const control = controlOf(store, pass);
    const answers = store.runs.checkpoints(run.id, pass.pass);
    if (!answers.some(({ page, items }) => page === control && items === 1)) continue;
    for (const { page, items, doubt } of answers) if (items === 0 && doubt === null) gone.add(page);
  }
  return gone;
}

function whyHeld(
  store: Reader,
  { all, unexpected }: { readonly all: number; readonly unexpected: number },
  assessment: Assessment,
  settings: SweepSettings,
): string | null {
  const living = store.products.living();
  const limit = removalLimitOf(settings, living);
  const list = newestList(assessment);
  const total = list === undefined ? 0 : newestTotal(list.windows);
  if (unexpected === 0) return null;
  if (total === 0) return 'the source lists no product at all';
  if (unexpected > limit) {
    // What the source announced does not count against the limit, and is held with the rest.
    const announced = all === unexpected ? '' : `; the source announced ${all - unexpected} more, ${all} in all`;
    return `${unexpected} removals are more than the limit of ${limit}${announced}`;
  }
  const listed = assessment.listed.size;
  if (Math.abs(listed - total) > limit) return `the source says that it has ${total} products, and ${listed} were read`;
  return null;
}

export function sweep(
  store: Reader,
  run: Run,
  assessment: Assessment,
  conclusion: Conclusion,
  settings: SweepSettings,
): Sweep {
  const unseen = store.removals.unseen(assessment.seen);
  const sealed = conclusion.proof === 'sealed';
  const lookedUp = conclusion.mustSettle ? new Set<number>() : lookedUpInVain(store, run);
  const gone = sealed ? new Set(unseen) : lookedUp;
  const confirmed = (id: number): boolean =>
    conclusion.countAgrees && store.removals.missingRuns(id) + 1 >= settings.confirmations;
  const remove = unseen.filter((id) => gone.has(id) || confirmed(id));
  const unexpected = remove.filter((id) => !expected(store, id)).length;
  const holdReason = whyHeld(store, { all: remove.length, unexpected }, assessment, settings);
  const removed = new Set(remove);
  return { missing: unseen.filter((id) => !removed.has(id)), remove, holdReason };
}
