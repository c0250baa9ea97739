import { CatchwordError } from '@catchword/base/errors';
import { isbnForms } from '@catchword/base/isbn';
import type { Reader } from '../schema/reader.ts';
import type { ProductRow } from './product-rows.ts';

/**
 * Finds the product whose key is `text`, or else whose print or electronic ISBN it is, with 10 or 13 digits, with or
 * without dashes. Prefers a living product to a removed one.
 * @throws CatchwordError USAGE if several products have the ISBN
 */
export function findProduct(store: Reader, text: string): ProductRow | undefined {
  const known = store.products.get(text);
  if (known !== undefined) return known;
  const forms = isbnForms(text);
  const found = forms.length === 0 ? [] : store.products.withIsbn([text, ...forms]);
  const living = found.filter(({ removedAt }) => removedAt === null);
  const named = living.length > 0 ? living : found;
  if (named.length < 2) return named[0];
  const names = named.map(({ vbid }) => vbid).join(', ');
  const hint = 'Use the vbid of one of them.';
  throw new CatchwordError('USAGE', `${named.length} products have the ISBN ${text}: ${names}`, { hint });
}

/** The same. @throws CatchwordError NOT_FOUND with the hint if there is none */
export function requireProduct(store: Reader, text: string, hint: string): ProductRow {
  const found = findProduct(store, text);
  if (found !== undefined) return found;
  throw new CatchwordError('NOT_FOUND', `the mirror has no product ${JSON.stringify(text)}`, { hint });
}
