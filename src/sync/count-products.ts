import { isWithdrawnBody } from '../catalog/field-values.ts';
import type { IdSet } from '../catalog/id-set.ts';
import { endOf, startOf } from '../proof/plan.ts';
import type { Pass } from '../store/rows/runs.ts';
import type { Reader } from '../store/schema/reader.ts';
import type { Applied } from './apply-page.ts';

interface Counted {
  readonly store: Reader;
  /** The deltas of the run, in the order in which they were read. */
  readonly deltas: readonly Pass[];
  /** Products in the newest reading of the whole list. */
  readonly listed: IdSet;
  /** The last delta that showed the product; -1 for none. */
  readonly modifiedIn: (id: number) => number;
  readonly highest: number;
}

/**
 * Counts the products that the source's total should count: those in the list, and those that the run's last deltas show
 * and that are sold. Deltas also show what was withdrawn; lookups and earlier readings also find what the list does not
 * hold any more. Each of these would make up for a living product that was not read.
 */
export function countProducts({ store, deltas, listed, modifiedIn, highest }: Counted): number {
  /** Deltas of whose changes a later one tells, too: what that one does not show is erased. */
  const retold = new Set<number>();
  for (const [at, { pass, from }] of deltas.entries()) {
    const start = from ?? 0;
    if (deltas.slice(at + 1).some((later) => (later.from ?? start + 1) <= start)) retold.add(pass);
  }

  function isCounted(id: number): boolean {
    const told = modifiedIn(id);
    if (listed.has(id) || told < 0 || retold.has(told)) return listed.has(id);
    const product = store.removals.living(id);
    return product !== undefined && !isWithdrawnBody(product.body);
  }

  let count = 0;
  for (let id = 1; id <= highest; id++) if (isCounted(id)) count++;
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
