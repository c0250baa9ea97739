import { parseIsoTime } from '@catchword/base/iso-time';
import { productsOf } from '@catchword/catalog/page-items';
import type { Envelope, Page } from '@catchword/catalog/page-types';
import type { Product } from '@catchword/catalog/product';
import type { CatalogItem, CatalogProduct } from '@catchword/catalog/product-type';
import { validateLookup } from '@catchword/catalog/validate-page';
import * as z from 'zod';
import type { Caller } from '../http/caller.ts';
import { type CallOptions, callOptions, optionsOf } from '../input/call-options.ts';
import { type OptionsOf, texts } from '../input/request-fields.ts';
import { type ProductSettings, readProduct } from './product-operations.ts';
import { readPages } from './read-pages.ts';

/** One answer of the service: the products, and what it says of the whole list then. */
export interface ProductsPage extends Envelope, Pick<Page, 'rejected'> {
  readonly products: readonly CatalogItem[];
  /** When the service answered by its own clock, milliseconds since 1970: where the next delta starts. Null if unknown. */
  readonly sourceTime: number | null;
}

const TIME = 'must be a Date, or an ISO 8601 time such as 2026-11-20T02:00:00Z';
const PAGE_SIZE = 'must be a whole number from 1 to 1000';

/** Parsed as milliseconds since 1970. */
const time = z
  .union([z.date(), z.string()], TIME)
  .transform((given, context) => {
    const ms = given instanceof Date ? given.getTime() : parseIsoTime(given);
    if (ms !== null) return ms;
    context.issues.push({ code: 'custom', message: TIME, input: given });
    return z.NEVER;
  })
  .optional();

/** @rule 4.4-9, 4.4-12, 8-2 */
const LOOKUP = {
  /** Groups to add to the items: `metadata`, `subjects`, and others that the service knows. Default: none. */
  includeDetails: texts.readonly().default([]),
  /** ISO 4217 codes that prices are limited to. Default: all. */
  currency: texts.readonly().default([]),
};
const LIST = {
  ...LOOKUP,
  /** Only changes since then: a Date, or an ISO 8601 time, UTC without a zone. Default: all products. */
  from: time,
  /** Only changes until then, as `from`. The interface does not show the parameter's name: `untilParam`. Default: now. */
  until: time,
  /** Products per page, 1 to 1000; default 1000. */
  perPage: z.int(PAGE_SIZE).min(1, PAGE_SIZE).max(1_000, PAGE_SIZE).default(1_000),
};
const LOOKUP_OPTIONS = callOptions(LOOKUP);
const LIST_OPTIONS = callOptions(LIST);

export type CatalogOptions = CallOptions & OptionsOf<typeof LOOKUP>;
export type ProductsOptions = CallOptions & OptionsOf<typeof LIST>;

export type CatalogSettings = Omit<ProductSettings, keyof typeof LOOKUP> & { readonly lookupPath: string };

export type Catalog = ReturnType<typeof createCatalog>;

function itemOf({ search: _search, withdrawn: _withdrawn, ...item }: Product): CatalogItem {
  return { ...item, product: JSON.parse(item.body) as CatalogProduct };
}

/** The product catalog (interface, 4.4). */
export function createCatalog(caller: Caller, defaults: CatalogSettings) {
  return {
    /**
     * Reads page after page, each when it is requested. The catalog changes meanwhile: a product may move to a page that
     * was already read. `catchword sync` makes an exact copy.
     * @throws CatchwordError USAGE, PAGE_INVALID, SOURCE_*, SERVICE_TOKEN, INTERRUPTED
     */
    products: async function* (options?: ProductsOptions): AsyncGenerator<ProductsPage, void, undefined> {
      const { signal, from = null, until = null, perPage, ...own } = optionsOf(LIST_OPTIONS, options);
      const range = { from, until, page: undefined, perPage };
      for await (const found of readPages(caller, { ...defaults, ...own }, range, signal)) {
        const products = productsOf(found).flatMap((product) => (product === null ? [] : [itemOf(product)]));
        yield { ...found.envelope, products, rejected: found.rejected, sourceTime: found.sourceTime };
      }
    },
    /** @returns undefined if the service does not know the product @throws CatchwordError as above */
    product: async (vbid: string, options?: CatalogOptions): Promise<CatalogItem | undefined> => {
      const { signal, ...own } = optionsOf(LOOKUP_OPTIONS, options);
      const operation = readProduct(defaults.lookupPath, vbid, { ...defaults, ...own });
      const { body } = await caller.call(operation, signal);
      const [found] = productsOf(validateLookup(body, vbid, { page: 1, perPage: 1 }));
      return found == null ? undefined : itemOf(found);
    },
  };
}
