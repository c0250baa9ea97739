import { isWithdrawnBody } from '@catchword/catalog/field-values';
import { limitOf } from '@catchword/catalog/product-limit';
import type { HeldReason, HoldReason } from '@catchword/catalog/reasons';
import type { Run } from '@catchword/catalog/run-types';
import type { Reader } from '../store/schema/reader.ts';
import type { Applied } from './apply-page.ts';
import type { RunSettings } from './run-settings.ts';
import type { Conclusion } from './verdict.ts';

export type SweepSettings = Pick<RunSettings, 'removalLimit' | 'confirmations'>;

/** How long before and after a lookup another one must have found a product. */
const VOUCHED_MS = 60_000;

/**
 * Products that lookups did not find. A service that finds nothing at all for a while says so of living products, too:
 * each answer counts only between two lookups that found a product. Lookups are made one after another, so the one
 * before was answered when this one was sent, and this one when the next was sent.
 */
function notFoundByLookup(store: Reader, run: Run): ReadonlySet<number> {
  const gone = new Set<number>();
  for (const { kind, pass } of store.runs.passes(run.id)) {
    if (kind !== 'lookup') continue;
    const answers = store.runs.checkpoints(run.id, pass);
    for (const [at, { page, items, doubt, requestedAt }] of answers.entries()) {
      if (items > 0 || doubt !== null) continue;
      const vouches = (one: Applied | undefined) =>
        one?.items === 1 && Math.abs(one.requestedAt - requestedAt) <= VOUCHED_MS;
      if (vouches(answers[at - 1]) && vouches(answers[at + 1])) gone.add(page);
    }
  }
  return gone;
}

/** Why these removals are held; null if they are made. */
function whyHeld(
  store: Reader,
  remove: readonly number[],
  { assessment: { list }, count }: Conclusion,
  settings: SweepSettings,
): HoldReason | null {
  const limit = limitOf(settings.removalLimit, store.products.living());
  // The source has not announced that it would withdraw these.
  const unexpected = remove.filter((id) => !isWithdrawnBody(store.removals.living(id)?.body ?? '{}')).length;
  if ((list?.total ?? 0) === 0 && remove.length > 0) return { code: 'empty' };
  if (unexpected === 0) return null;
  if (unexpected > limit) return { code: 'limit', removals: unexpected, limit, announced: remove.length - unexpected };
  return count !== undefined && Math.abs(count.reason.read - count.reason.wanted) > limit ? count.reason : null;
}

/**
 * Decides at the end of a full run about the products that it did not see: a sealed run has proven that they are gone.
 * In an open run they are missing until a point lookup does not find them, or several full runs in a row, each of which
 * read as many products as the source's total, did not see them.
 */
export function sweep(store: Reader, run: Run, conclusion: Conclusion, settings: SweepSettings) {
  const { assessment, proof, mustSettle, countAgrees } = conclusion;
  const unseen = store.removals.unseen(assessment.seen);
  const sealed = proof === 'sealed';
  const lookedUp = mustSettle ? new Set<number>() : notFoundByLookup(store, run);
  const gone = sealed ? new Set(unseen) : lookedUp;
  const confirmed = (id: number): boolean =>
    countAgrees && store.removals.missingRuns(id) + 1 >= settings.confirmations;
  const remove = unseen.filter((id) => gone.has(id) || confirmed(id));
  const removed = new Set(remove);
  const missing = unseen.filter((id) => !removed.has(id));
  const why = whyHeld(store, remove, conclusion, settings);
  const hold: HeldReason | null = why && { code: 'held', why, verdict: null };
  return { missing, remove, hold };
}
