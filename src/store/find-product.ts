import { isbnForms } from '../catalog/isbn.ts';
import { CatchwordError } from '../errors.ts';
import type { ProductRow } from './products.ts';
import type { Reader } from './reader.ts';

/**
 * The product whose key `text` is; if there is none, the one that has it as its print or electronic ISBN, with 10 or 13
 * digits, with or without dashes. A living product is found rather than a removed one.
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
  throw new CatchwordError('USAGE', `${named.length} products have the ISBN ${text}: ${names}`, {
    hint: 'Name one of them by its vbid.',
  });
}
