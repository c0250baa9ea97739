/** Validates pages that are given as text, and shows their products. */

import { productsOf } from '@catchword/catalog/page-items';
import type { Page, Window } from '@catchword/catalog/page-types';
import type { Product } from '@catchword/catalog/product';
import { validateLookup, validatePage } from '@catchword/catalog/validate-page';

type PageWithProducts = Page & { readonly products: readonly (Product | null)[] };

export function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.from(text));
}

function withProducts(page: Page): PageWithProducts {
  return { ...page, products: productsOf(page) };
}

export function pageOfText(text: string, window: Window, filling = false): PageWithProducts {
  return withProducts(validatePage(bytesOf(text), window, filling));
}

export function lookupOfText(text: string, vbid: string, window: Window): PageWithProducts {
  return withProducts(validateLookup(bytesOf(text), vbid, window));
}
