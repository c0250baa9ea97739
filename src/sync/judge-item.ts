import { type Difference, difference, isEmpty, sameContent } from '@catchword/catalog/content';
import type { Fields } from '@catchword/catalog/field-values';
import { objectMembers } from '@catchword/catalog/json-text';
import type { PageItems } from '@catchword/catalog/page-items';
import type { Product } from '@catchword/catalog/product';
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
 * - `behind`: the list shows it in front of this place, too, and otherwise: the first place counts, in whatever order
 *   windows arrive
 * - `partial`: a delta shows it without some members that it has: nothing is written, and the run says so
 */
export type Judgement =
  | { readonly kind: 'partial'; readonly missing: readonly string[]; readonly leftOut: readonly string[] }
  | { readonly kind: 'new' | 'absent' | 'same' | 'withdrawn' | 'outdated' | 'behind' }
  | { readonly kind: 'changed'; readonly change: Difference };

export type JudgeRules = Pick<RunSettings, 'ignoreFields' | 'withdrawnAs' | 'deletedField'> & {
  readonly isDelta: boolean;
  /** Whether the run has read the list, too; default: no. */
  readonly hasList?: boolean;
  /** How many products a delta's page shows without a member that the mirror has of them; 0 if it shows it of any. */
  readonly without?: (member: string) => number;
  /** Whether the products of the mirror have this member, so that few lose it; default: yes. */
  readonly isCommon?: (member: string) => boolean;
  /** Members that deltas of this source have been found to leave out; default: none. */
  readonly notInDeltas?: ReadonlySet<string>;
  /** Whether another window of this pass has shown the product as of a later moment. */
  readonly isOutdated: (known: KnownProduct) => boolean;
  /** Whether a list of this run shows the product in front of this place, or is going to; default: no. */
  readonly isBehind?: (product: Pick<KnownProduct, 'id'> & Pick<Product, 'vbid'>) => boolean;
};

/** Whether a product that the source has withdrawn is removed from the mirror. */
export function isGone(
  product: Pick<Product, 'withdrawn'>,
  { withdrawnAs }: Pick<RunSettings, 'withdrawnAs'>,
): boolean {
  return product.withdrawn && withdrawnAs === 'removed';
}

/**
 * What a member says, as JSON, if its name alone tells that the product is deleted: yes, or since when. Not dates such as
 * 1970-01-01 and 9999-12-31, which stand for none.
 */
const SAYS_YES = /^"?(?:true|1|yes|y|20\d\d-\d\d-\d\d(?:[T ].*)?)"?$/i;

/** Whether the item says, as CATCHWORD_DELETED_FIELD describes, that the product does not exist any more. */
function isDeleted({ body }: Pick<Product, 'body'>, { deletedField }: Pick<RunSettings, 'deletedField'>): boolean {
  if (deletedField === undefined) return false;
  const [name = '', wanted] = deletedField.split('=', 2);
  const value = (JSON.parse(body) as Fields)[name];
  return wanted === undefined ? SAYS_YES.test(JSON.stringify(value ?? null)) : String(value) === wanted;
}

/** Whether an item of the page may say so. */
export function mayBeDeleted(
  { bytes }: Pick<PageItems, 'bytes'>,
  { deletedField }: Pick<RunSettings, 'deletedField'>,
): boolean {
  const [name] = deletedField?.split('=') ?? [];
  return name !== undefined && Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).includes(`"${name}"`);
}

/** A delta that leaves out so many members shows a part of the product. Fewer may really be gone. */
const PART_LEAST = 3;

/**
 * The members that a delta leaves out, if it has another form than the list; otherwise null. What shows that: it leaves out
 * many that no item of the page shows, or more than it shows; or one that no item shows, and the list of this run has the
 * product with it and the same others, or another product lacks it, too, although the others of the mirror have it, or an
 * earlier run found that deltas leave it out.
 * A product that has really lost them is shown so by the next list.
 */
function partOf(
  { before, added }: Difference,
  body: string,
  { isDelta, hasList = false, notInDeltas, without = () => 0, isCommon = () => true }: JudgeRules,
): (Judgement & { readonly kind: 'partial' }) | null {
  if (!isDelta || before === '{}') return null;
  const now = objectMembers(body);
  const was = [...objectMembers(before).keys()];
  const missing = was.filter((name) => !now.has(name));
  const isSubset = hasList && added.length === 0 && missing.length === was.length;
  const leftOut = missing.filter((name) => without(name) > 0);
  const isForm = leftOut.some(
    (name) => isSubset || (without(name) > 1 && isCommon(name)) || notInDeltas?.has(name) === true,
  );
  const isPart = missing.length > now.size - added.length || leftOut.length === missing.length;
  return isForm || (isPart && missing.length >= PART_LEAST) ? { kind: 'partial', missing, leftOut } : null;
}

/** @param known what the mirror has of the product, a tombstone included; undefined if it does not have it */
export function judgeItem(product: Product, known: KnownProduct | undefined, rules: JudgeRules): Judgement {
  const { ignoreFields, isDelta, isOutdated, isBehind = () => false } = rules;
  const gone = isGone(product, rules) || isDeleted(product, rules);
  if (known === undefined) return { kind: gone ? 'absent' : 'new' };
  const place = { id: known.id, vbid: product.vbid };
  if (gone && !known.removed && isBehind(place)) return { kind: 'behind' };
  if (gone) return { kind: known.removed || isOutdated(known) ? 'same' : 'withdrawn' };
  // Deltas go on to tell of products that a run has removed since they were withdrawn.
  if (known.removed && product.withdrawn && isDelta) return { kind: 'same' };
  const change = difference(known.body, product.body);
  const isSame = isEmpty(change) || (ignoreFields.length > 0 && sameContent(known.body, product.body, ignoreFields));
  if (isSame && !known.removed) return { kind: 'same' };
  const part = partOf(change, product.body, rules);
  if (part !== null) return part;
  if (isBehind(place)) return { kind: 'behind' };
  return isOutdated(known) ? { kind: 'outdated' } : { kind: 'changed', change };
}
