/** Validates pages that are given as text, and shows their products. */

import { productsOf } from '../../src/catalog/page-items.ts';
import type { Page, Window } from '../../src/catalog/page-types.ts';
import type { Product } from '../../src/catalog/product.ts';
import { validateLookup, validatePage } from '../../src/catalog/validate-page.ts';

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
