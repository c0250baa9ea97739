import { type Difference, difference, isEmpty, sameContent } from '../catalog/content.ts';
import type { Product } from '../catalog/product.ts';
import type { KnownProduct } from '../store/rows/product-rows.ts';
import type { RunSettings } from './run-settings.ts';

/*
 * Did this item change? The one answer. Accelerators (sync/fast) may only find items of which this file would say `same`,
 * or `new`.
 */

/**
 * What a valid item of a page means for the mirror:
 * - `new`: the mirror does not have the product
 * - `absent`: the mirror does not have it either, and the source has withdrawn it
 * - `same`: nothing is to be written
 * - `changed`: it has another content, or is a tombstone that is restored
 * - `withdrawn`: it is to be removed, because the source has withdrawn it
 * - `outdated`: another window has shown the product later, and otherwise
 */
export type Judgement =
  | { readonly kind: 'new' | 'absent' | 'same' | 'withdrawn' | 'outdated' }
  | { readonly kind: 'changed'; readonly change: Difference };

export type JudgeRules = Pick<RunSettings, 'ignoreFields' | 'withdrawnAs'> & {
  readonly isDelta: boolean;
  /** Whether another window of this pass has shown the product as of a later moment. */
  readonly isOutdated: (known: KnownProduct) => boolean;
};

/** Whether a product that the source has withdrawn is removed from the mirror. */
export function isGone(
  product: Pick<Product, 'withdrawn'>,
  { withdrawnAs }: Pick<RunSettings, 'withdrawnAs'>,
): boolean {
  return product.withdrawn && withdrawnAs === 'removed';
}

/** @param known what the mirror has of the product, a tombstone included; undefined if it does not have it */
export function judgeItem(product: Product, known: KnownProduct | undefined, rules: JudgeRules): Judgement {
  const { ignoreFields, isDelta, isOutdated } = rules;
  const gone = isGone(product, rules);
  if (known === undefined) return { kind: gone ? 'absent' : 'new' };
  if (gone) return { kind: known.removed || isOutdated(known) ? 'same' : 'withdrawn' };
  // Deltas go on to tell of products that a run has removed since they were withdrawn.
  if (known.removed && product.withdrawn && isDelta) return { kind: 'same' };
  const change = difference(known.body, product.body);
  const isSame = isEmpty(change) || (ignoreFields.length > 0 && sameContent(known.body, product.body, ignoreFields));
  if (isSame && !known.removed) return { kind: 'same' };
  return isOutdated(known) ? { kind: 'outdated' } : { kind: 'changed', change };
}
