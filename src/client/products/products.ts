import type { Envelope, Page } from '../../catalog/page.ts';
import type { Product } from '../../catalog/product.ts';
import { validateLookup, validatePage } from '../../catalog/validate-page.ts';
import { CatchwordError } from '../../errors.ts';
import { parseIsoTime } from '../../iso-time.ts';
import type { Caller } from '../http/caller.ts';
import { type CallOptions, optionsOf } from '../input/call-options.ts';
import { type ProductSettings, READ_PRODUCTS, readProduct } from './product-operations.ts';

export interface CatalogOptions extends CallOptions {
  /** Groups to add to the items: `metadata`, `subjects`, and others that the service knows. Default: none. */
  readonly includeDetails?: readonly string[] | undefined;
  /** ISO 4217 codes that prices are limited to. Default: all. */
  readonly currency?: readonly string[] | undefined;
}

export interface ProductsOptions extends CatalogOptions {
  /** Only changes since then: a Date, or an ISO 8601 time, UTC without a zone. Default: all products. */
  readonly from?: Date | string | undefined;
  /** Only changes until then, as `from`. The interface does not show the parameter's name: `untilParam`. Default: now. */
  readonly until?: Date | string | undefined;
  /** Products per page, 1 to 1000; default 1000. */
  readonly perPage?: number | undefined;
}

/** One page of the catalog. The `body` of a product has all of its fields as JSON text. */
export interface ProductsPage extends Envelope, Pick<Page, 'rejected'> {
  readonly products: readonly Product[];
  /** When the service answered by its own clock, milliseconds since 1970: where the next delta starts. Null if unknown. */
  readonly sourceTime: number | null;
}

/** The product catalog (interface, 4.4). */
export interface Catalog {
  /**
   * Reads page after page, each when it is requested. The catalog changes meanwhile: a product may move to a page that
   * was already read. `catchword sync` makes an exact copy.
   * @throws CatchwordError USAGE, PAGE_INVALID, SOURCE_*, SERVICE_TOKEN, INTERRUPTED
   */
  products(options?: ProductsOptions): AsyncGenerator<ProductsPage, void, undefined>;
  /**
   * @returns undefined if the service does not know the product
   * @throws CatchwordError as above
   */
  product(vbid: string, options?: CatalogOptions): Promise<Product | undefined>;
}

const OPTIONS = ['includeDetails', 'currency'] as const;
const MAX_PER_PAGE = 1_000;

function usage(message: string, hint: string): CatchwordError {
  return new CatchwordError('USAGE', message, { hint });
}

function timeOf(name: 'from' | 'until', time: Date | string | undefined): number | null {
  if (time === undefined) return null;
  const ms = time instanceof Date ? time.getTime() : parseIsoTime(String(time));
  if (ms !== null && !Number.isNaN(ms)) return ms;
  throw usage(`${name} is not a valid time`, 'Pass a Date, or an ISO 8601 time such as 2026-11-20T02:00:00Z.');
}

function pageSize(perPage = MAX_PER_PAGE): number {
  if (Number.isInteger(perPage) && perPage >= 1 && perPage <= MAX_PER_PAGE) return perPage;
  throw usage(`perPage: ${String(perPage)} is not valid`, `Pass a whole number from 1 to ${MAX_PER_PAGE}.`);
}

function textsOf(name: 'includeDetails' | 'currency', given: unknown): string[] {
  if (Array.isArray(given) && given.every((one) => typeof one === 'string' && /\S/.test(one))) return [...given];
  throw usage(`${name} is not an array of texts`, `Pass an array, such as ${name}: ['…'].`);
}

export type CatalogSettings = ProductSettings & { readonly lookupPath: string };

export function createCatalog(caller: Caller, defaults: CatalogSettings): Catalog {
  const lookup = readProduct(defaults.lookupPath);

  function settingsFor({ includeDetails, currency }: CatalogOptions): ProductSettings {
    return {
      ...defaults,
      ...(includeDetails !== undefined && { includeDetails: textsOf('includeDetails', includeDetails) }),
      ...(currency !== undefined && { currency: textsOf('currency', currency) }),
    };
  }

  return {
    products: async function* (given) {
      const { signal, ...options } = optionsOf(given, [...OPTIONS, 'from', 'until', 'perPage']);
      const range = { from: timeOf('from', options.from), until: timeOf('until', options.until) };
      const perPage = pageSize(options.perPage);
      const settings = settingsFor(options);
      for (let page = 1, pages = 1; page <= pages; page++) {
        const window = { page, perPage };
        const { text, sourceTime } = await caller.call(READ_PRODUCTS, { window, ...range, settings }, signal);
        const { envelope, products, rejected } = validatePage(text, window);
        yield { ...envelope, products: products.filter((product) => product !== null), rejected, sourceTime };
        // The catalog may have grown or shrunk since the last page.
        pages = envelope.totalPages;
      }
    },
    product: async (vbid, given) => {
      const { signal, ...options } = optionsOf(given, OPTIONS);
      const { text } = await caller.call(lookup, { vbid, settings: settingsFor(options) }, signal);
      return validateLookup(text, vbid, { page: 1, perPage: 1 }).products[0] ?? undefined;
    },
  };
}
