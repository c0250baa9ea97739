import { isWithdrawnBody } from '../catalog/product.ts';
import type { Run } from '../catalog/run.ts';
import type { Reader } from '../store/reader.ts';
import type { Assessment } from './assess-run.ts';
import type { Conclusion } from './conclude-run.ts';
import { controlOf } from './plan-pass.ts';

/**
 * Decides at the end of a full run about the products that it did not see.
 *
 * A sealed run has proven that they are gone, so they are removed. In an open run they are *missing*: they are removed
 * if a point lookup does not find them, or if several full runs in a row did not see them, each of which read as many
 * products as the source's total. Whatever the proof, more unexpected removals than the limit are held: an operator
 * decides.
 */
export interface SweepSettings {
  readonly removalLimit: { readonly percent?: number | undefined; readonly products?: number | undefined };
  /** Full runs in a row that must not have seen a product. */
  readonly confirmations: number;
}

export interface Sweep {
  readonly missing: readonly number[];
  readonly remove: readonly number[];
  /** Why the removals are held; null if they are made. */
  readonly holdReason: string | null;
}

/** In a small mirror a percentage is a handful of products, which may change on any day. */
const LIMIT_LEAST = 100;

/** How many unexpected removals are made without a decision. */
export function removalLimitOf({ removalLimit }: Pick<SweepSettings, 'removalLimit'>, living: number): number {
  if (removalLimit.products !== undefined) return removalLimit.products;
  return Math.max(LIMIT_LEAST, Math.floor(((removalLimit.percent ?? 0) / 100) * living));
}

/** Whether the source announced that it would withdraw the product. */
function expected(store: Reader, id: number): boolean {
  const body = store.removals.candidate(id)?.body;
  return body !== undefined && isWithdrawnBody(body);
}

/** Products that lookups did not find. Lookups count only if they found a product that exists. */
function notFoundByLookup(store: Reader, run: Run): ReadonlySet<number> {
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
  const total = assessment.list?.total ?? 0;
  if (unexpected === 0) return null;
  if (total === 0) return 'the source lists no product at all';
  if (unexpected > limit) {
    // Announced removals do not count against the limit, but are held with the others.
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
  const lookedUp = conclusion.mustSettle ? new Set<number>() : notFoundByLookup(store, run);
  const gone = sealed ? new Set(unseen) : lookedUp;
  const confirmed = (id: number): boolean =>
    conclusion.countAgrees && store.removals.missingRuns(id) + 1 >= settings.confirmations;
  const remove = unseen.filter((id) => gone.has(id) || confirmed(id));
  const unexpected = remove.filter((id) => !expected(store, id)).length;
  const holdReason = whyHeld(store, { all: remove.length, unexpected }, assessment, settings);
  const removed = new Set(remove);
  return { missing: unseen.filter((id) => !removed.has(id)), remove, holdReason };
}
