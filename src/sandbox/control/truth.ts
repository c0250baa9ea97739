import type { Product } from '../catalog/product-states.ts';
import { itemsFor } from '../operations/products.ts';
import type { Stores } from '../sandbox-stores.ts';

/** Lines written at once. */
const PIECE = 1000;

/**
 * `GET /_sandbox/truth`: the products on sale at the moment of the request, in the order of the list, as lines of JSON.
 * Only their versions are noted at once; the text is made while it is read.
 * @throws Rejection
 */
export function truth(stores: Stores, params: URLSearchParams): Iterable<string> {
  const { catalog, assets } = stores;
  const render = itemsFor({ ...stores, assets: { written: new Map(assets.written) } }, params);
  return pieces(catalog.list(null, 0, Number.POSITIVE_INFINITY).products, render);
}

function* pieces(products: readonly Product[], render: (product: Product) => string): Iterable<string> {
  for (let start = 0; start < products.length; start += PIECE) {
    yield products
      .slice(start, start + PIECE)
      .map((product) => `${render(product)}\n`)
      .join('');
  }
}
