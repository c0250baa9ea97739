import { printable } from '../base/printable.ts';
import type { Run } from '../catalog/run-types.ts';
import type { HeldPart } from '../store/rows/removals.ts';
import type { Store } from '../store/store.ts';
import { plural } from './text.ts';

/** Products that are looked at, so that a page can ask every second. */
const SAMPLE = 1_000;
/** Values that are named, and characters of each. */
const [NAMED, SHOWN] = [5, 60];

const percent = (part: number, whole: number): string => `${Number(((100 * part) / whole).toPrecision(3))}%`;

function shares(parts: readonly HeldPart[]): string {
  const whole = parts.reduce((sum, [, products]) => sum + products, 0);
  const named = parts.slice(0, NAMED).map(([value, products]) => {
    return `${printable(value ?? 'none').slice(0, SHOWN)} ${percent(products, whole)}`;
  });
  return [...named, ...(parts.length > NAMED ? ['…'] : [])].join(', ');
}

/** What a proof means for the decision. */
const MEANINGS = {
  sealed:
    'sealed: catchword read the whole list and overlooked nothing. That the list is right is not proven: an account, a filter or a fault of the service may hide living products.',
  open: 'open: the run may have overlooked products. It holds only products that lookups, or several full runs in a row, did not find.',
};

/**
 * What an operator judges held removals by: their share of the catalog, what they have in common, and the proof.
 * @param total how many products the run would remove
 */
export function heldFacts({ removals, products }: Store, { id, proof }: Run, total: number): Record<string, string> {
  if (total === 0) return {};
  const step = Math.ceil(total / SAMPLE);
  const parts = Object.entries(removals.heldBy).map(([name, read]) => [name, shares(read(id, step))] as const);
  const living = Math.max(1, products.living());
  const share = `${percent(total, living)} of ${plural(living, 'product')}`;
  return { 'Share of the catalog': share, ...Object.fromEntries(parts), Proof: MEANINGS[proof ?? 'open'] };
}
