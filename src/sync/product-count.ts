import { isWithdrawnBody } from '@catchword/catalog/field-values';
import type { IdSet } from '@catchword/catalog/id-set';
import type { CountReason } from '@catchword/catalog/reasons';
import { endOf, startOf } from '../proof/plan.ts';
import type { Pass } from '../store/rows/runs.ts';
import type { Reader } from '../store/schema/reader.ts';
import type { Applied } from './apply-page.ts';
import type { RunSettings } from './run-settings.ts';

/* The count: how many products a run has read of those that the source's total counts. */

/**
 * Counts the products that the source's total should count: those in the list, and those that the run's last deltas show
 * and that are sold. Deltas also show what was withdrawn; lookups and earlier readings also find what the list does not
 * hold any more. Each of these would make up for a living product that was not read.
 * @param deltas not those whose changes a later one tells, too: what that one does not show is erased
 * @param modifiedIn the last delta that showed a product; -1 for none
 */
export function countProducts(
  store: Reader,
  deltas: readonly { pass: Pick<Pass, 'pass'> }[],
  listed: IdSet,
  modifiedIn: (id: number) => number,
): number {
  const counting = new Set(deltas.map(({ pass }) => pass.pass));

  function isCounted(id: number): boolean {
    if (listed.has(id) || !counting.has(modifiedIn(id))) return listed.has(id);
    const product = store.removals.living(id);
    return product !== undefined && !isWithdrawnBody(product.body);
  }

  let count = 0;
  for (let id = store.products.lastId(); id > 0; id--) if (isCounted(id)) count++;
  return count;
}

/**
 * Counts the withdrawn items of a list that the mirror does not have. They have no id, and the list moves between two
 * windows: so each window counts its items from the last product that it shares with the window before, to the last
 * one that it shares with the window behind.
 */
export function countUnknown(windows: readonly Applied[], idsOf: (window: Applied) => number[]): number {
  const sorted = [...windows].sort((a, b) => startOf(a) - startOf(b));
  let unknown = 0;
  let start = 0;
  for (const [at, window] of sorted.entries()) {
    const own = idsOf(window);
    const next = sorted[at + 1];
    const shared = new Set(own);
    const behind = next === undefined ? [] : idsOf(next);
    const joint = behind.findLastIndex((id) => id !== 0 && shared.has(id));
    const end = joint === -1 ? own.length : own.lastIndexOf(behind[joint] ?? 0) + 1;
    if (window.rejected === 0) unknown += own.slice(start, end).filter((id) => id === 0).length;
    start = joint === -1 && next !== undefined ? Math.max(0, endOf(window) - startOf(next)) : joint + 1;
  }
  return unknown;
}

/** How many items repeat a product of the same answer. */
export function repeatsIn(answers: readonly (readonly number[])[]): number {
  const products = answers.map((ids) => ids.filter((id) => id > 0));
  return products.reduce((sum, ids) => sum + ids.length - new Set(ids).size, 0);
}

/** The source's total in its newest answer, except one that is empty by mistake and would hide what was not read. */
export function newestTotal(windows: readonly Applied[]): number {
  const later = (a: Applied, b: Applied) => b.pass > a.pass || (b.pass === a.pass && b.requestedAt >= a.requestedAt);
  const held = windows.filter(({ numItems }) => numItems > 0);
  return held.reduce((a, b) => (a === undefined || later(a, b) ? b : a), held[0])?.numItems ?? 0;
}

/** What a list says of its length, and what was read of it; as `ReadList`. */
interface Listed {
  readonly total: number;
  readonly end: number;
  readonly repeated: number;
  readonly rejected: number;
  readonly unknown: () => number;
}

/** Compares what was read with the source's total. @param products how many count as read @returns `agrees`: as many were read */
export function compareCount(
  products: number,
  list: Listed,
  { withdrawnAs, deletedField }: Pick<RunSettings, 'withdrawnAs' | 'deletedField'>,
) {
  // The mirror does not take up products that were withdrawn, or deleted, before it knew them.
  const unknown = withdrawnAs === 'removed' || deletedField !== undefined ? list.unknown() : 0;
  // A total that counts each product once is lower than the list is long.
  const wanted = list.repeated === 0 ? list.total : Math.max(list.total, list.end);
  const read = products + unknown + list.rejected + list.repeated;
  const reason: CountReason = { code: 'count', wanted, read, of: wanted === list.total ? 'total' : 'list' };
  return { agrees: read >= wanted, reason };
}
