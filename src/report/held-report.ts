import { printable } from '../base/printable.ts';
import type { Run } from '../catalog/run-types.ts';
import type { HeldPart } from '../store/rows/removals.ts';
import type { Store } from '../store/store.ts';
import { count, plural } from './text.ts';

/** Products that are looked at, so that a page can ask every second. */
const SAMPLE = 1_000;
/** Values that are named, with so many characters of each; the rest is counted. */
const NAMED = { values: 4, characters: 60 };

function percent(part: number, whole: number): string {
  const share = (100 * part) / Math.max(1, whole);
  return share > 0 && share < 0.1 ? 'less than 0.1%' : `${share.toFixed(share < 10 ? 1 : 0)}%`;
}

function shares(parts: readonly HeldPart[]): string {
  const sum = (some: readonly HeldPart[]) => some.reduce((total, { products }) => total + products, 0);
  const named = parts.slice(0, NAMED.values).map(({ value, products }) => {
    const name = value === null ? 'none' : printable(value.slice(0, NAMED.characters));
    return `${name} ${percent(products, sum(parts))}`;
  });
  const rest = parts.slice(NAMED.values);
  return [
    ...named,
    ...(rest.length > 0 ? [`${count(rest.length)} others ${percent(sum(rest), sum(parts))}`] : []),
  ].join(', ');
}

/**
 * What an operator judges held removals by: their share of the catalog, and what they have in common.
 * @param total how many products the run would remove
 */
export function heldFacts({ removals, products }: Store, runId: number, total: number): Record<string, string> {
  const step = Math.ceil(Math.max(1, total) / SAMPLE);
  const parts = Object.entries(removals.heldBy).map(([name, read]) => [name, shares(read(runId, step))] as const);
  const share = `${percent(total, products.living())} of ${plural(products.living(), 'product')}`;
  return { 'Share of the catalog': share, ...Object.fromEntries(parts) };
}

/** What the proof of a run means for the decision about its removals. */
export function proofForDecision({ proof }: Pick<Run, 'proof'>): string {
  return proof === 'sealed'
    ? 'The run is sealed: catchword read the whole list and overlooked nothing. It cannot prove that the list itself is right: an account, a filter or a fault of the service may hide living products.'
    : 'The run is open: it may have overlooked products. It holds only products that lookups, or several full runs in a row, did not find.';
}
