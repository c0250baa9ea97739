import type { Envelope, Page, Window } from '../../catalog/page.ts';
import type { Product } from '../../catalog/product.ts';
import { validateLookup, validatePage } from '../../catalog/validate-page.ts';
import { CatchwordError } from '../../errors.ts';
import { parseIsoTime } from '../../iso-time.ts';
import type { CallOptions } from '../http/json-request.ts';
import { pathPart } from '../http/path-segment.ts';
import type { Caller } from '../http/requester.ts';
import { CATALOG_FIELDS } from '../http/transport.ts';
import { optionsOf } from '../input/call-options.ts';
import { detailQuery, type ProductSettings, sourceDate, windowQuery } from './product-requests.ts';

export interface CatalogOptions extends CallOptions {
  /** Groups to add to the items: `metadata`, `subjects`, and others that the service knows. Default: none. */
  readonly includeDetails?: readonly string[] | undefined;
  /** ISO 4217 codes that prices are limited to. Default: all. */
  readonly currency?: readonly string[] | undefined;
}

export interface ProductsOptions extends CatalogOptions {
  /** Only what changed since then: a Date, or an ISO 8601 time, UTC without a zone. Default: all. */
  readonly from?: Date | string | undefined;
  /** Only what changed until then, as `from`. Its parameter's name is not shown: `untilParam`. Default: until now. */
  readonly until?: Date | string | undefined;
  /** Products a page, 1 to 1000; default 1000. */
  readonly perPage?: number | undefined;
}

/** One page of the catalog. What an item says beyond its fields here is in its `body`, as JSON text. */
export interface ProductsPage extends Envelope, Pick<Page, 'rejected'> {
  readonly products: readonly Product[];
  /** When the service answered, by its own clock, milliseconds since 1970: where the next delta starts. Null: not said. */
  readonly sourceTime: number | null;
}

/** The product catalog (interface, 4.4). */
export interface Catalog {
  /**
   * Reads page after page, each when it is asked for. The catalog changes meanwhile: products may move from a page to one
   * that was read before. For an exact copy there is `catchword sync`.
   * @throws CatchwordError USAGE, PAGE_INVALID, SOURCE_*, SERVICE_TOKEN, INTERRUPTED
   */
  products(options?: ProductsOptions): AsyncGenerator<ProductsPage, void, undefined>;
  /**
   * @returns undefined where the service does not know it
   * @throws CatchwordError as above
   */
  product(vbid: string, options?: CatalogOptions): Promise<Product | undefined>;
}

const OPTIONS = ['includeDetails', 'currency'] as const;
const PATH = '/v4/products';
const MAX_PER_PAGE = 1_000;

/** Milliseconds since 1970; null: no limit. */
interface Range {
  readonly from: number | null;
  readonly until: number | null;
}

function usage(message: string, hint: string): CatchwordError {
  return new CatchwordError('USAGE', message, { hint });
}

function timeOf(name: 'from' | 'until', time: Date | string | undefined): number | null {
  if (time === undefined) return null;
  const ms = time instanceof Date ? time.getTime() : parseIsoTime(String(time));
  if (ms !== null && !Number.isNaN(ms)) return ms;
  throw usage(`${name} is no time`, 'Give a Date, or an ISO 8601 time such as 2026-11-20T02:00:00Z.');
}

function pageSize(perPage = MAX_PER_PAGE): number {
  if (Number.isInteger(perPage) && perPage >= 1 && perPage <= MAX_PER_PAGE) return perPage;
  throw usage(`perPage: ${String(perPage)} cannot be used`, `A whole number from 1 to ${MAX_PER_PAGE} is needed.`);
}

/** A text would be taken apart into its letters. */
function requireTexts(name: 'includeDetails' | 'currency', given: unknown): void {
  if (Array.isArray(given) && given.every((one) => typeof one === 'string' && /\S/.test(one))) return;
  throw usage(`${name} is no array of texts`, `Give an array, of one text where it is one: ${name}: ['…'].`);
}

export type CatalogSettings = ProductSettings & { readonly lookupPath: string };

export function createCatalog(caller: Caller, defaults: CatalogSettings): Catalog {
  function settingsFor({ includeDetails, currency }: CatalogOptions): CatalogSettings {
    if (includeDetails !== undefined) requireTexts('includeDetails', includeDetails);
    if (currency !== undefined) requireTexts('currency', currency);
    return {
      ...defaults,
      ...(includeDetails !== undefined && { includeDetails: [...includeDetails] }),
      ...(currency !== undefined && { currency: [...currency] }),
    };
  }

  function get(path: string, query: URLSearchParams, signal: AbortSignal, identified: boolean) {
    // Of a page, one item that is not UTF-8 is rejected, and the others are read.
    const how = { token: true, repeatable: true, fields: CATALOG_FIELDS, keepsBytes: !identified };
    return caller.json({ method: 'GET', path, query, signal, identified, ...how });
  }

  async function readPage(
    window: Window,
    range: Range,
    settings: CatalogSettings,
    signal: AbortSignal,
  ): Promise<ProductsPage> {
    const query = windowQuery(settings, { window, ...range });
    const { text, headers } = await get(PATH, query, signal, false);
    const { envelope, products, rejected } = validatePage(text, window);
    const sourceTime = sourceDate(headers);
    return { ...envelope, products: products.filter((product) => product !== null), rejected, sourceTime };
  }

  return {
    products: async function* (given) {
      const { signal, ...options } = optionsOf(given, [...OPTIONS, 'from', 'until', 'perPage']);
      const range = { from: timeOf('from', options.from), until: timeOf('until', options.until) };
      const perPage = pageSize(options.perPage);
      const settings = settingsFor(options);
      for (let page = 1, pages = 1; page <= pages; page++) {
        const read = await readPage({ page, perPage }, range, settings, signal);
        yield read;
        // It may have grown, or shrunk, since the last page.
        pages = read.totalPages;
      }
    },
    product: async (vbid, given) => {
      const { signal, ...options } = optionsOf(given, OPTIONS);
      const settings = settingsFor(options);
      const path = settings.lookupPath.replace(':vbid', () => pathPart('vbid', vbid));
      try {
        const { text } = await get(path, detailQuery(settings), signal, true);
        const { products } = validateLookup(text, vbid, { page: 1, perPage: 1 });
        return products[0] ?? undefined;
      } catch (error) {
        if (error instanceof CatchwordError && error.code === 'NOT_FOUND') return undefined;
        throw error;
      }
    },
  };
}
