import { isUtf8 } from 'node:buffer';
import { parsed } from '@catchword/catalog/cut-page';
import { fieldsOf } from '@catchword/catalog/field-values';
import type { FetchTask, PageResponse, Window } from '@catchword/catalog/page-types';
import { doubtsIn, errorsIn, isFilled } from '@catchword/catalog/said-error';
import type { SourceConfig } from '@catchword/settings/config';
import { isXml, messageIn } from '../errors/error-message.ts';
import { dateOf, type Headers, header } from '../headers.ts';
import type { Operation } from '../http/caller.ts';
import type { Answer } from '../http/exchange.ts';
import { bodyError, notUtf8 } from '../http/response-body.ts';

/** @rule 4.4-1, 4.4-5..8, 4.4-10, 4.4-15 */
export interface ProductSettings
  extends Pick<SourceConfig, 'pageParam' | 'perPageParam' | 'untilParam' | 'currencyParam'> {
  readonly includeDetails: readonly string[];
  readonly currency: readonly string[];
}

/** How long a cache kept the answer. A second proxy may add another whole number of seconds to the `Age`. */
function ageOf(headers: Headers): { ageMs?: number } {
  const ages = (header(headers, 'age') ?? '').split(',').map((text) => text.trim());
  const known = ages.filter((text) => /^\d{1,9}$/.test(text)).map(Number);
  return known.length === 0 ? {} : { ageMs: Math.max(...known) * 1_000 };
}

function pageOf({ body, headers, requestedAt, receivedAt }: Answer): PageResponse {
  const relayed = header(headers, 'via') === undefined ? {} : { isRelayed: true };
  return { body, sourceTime: dateOf(headers), requestedAt, receivedAt, ...ageOf(headers), ...relayed };
}

/**
 * Whether an answer is a delta without changes, in a form other than a page: it says so, or it is silent and nothing
 * contradicts it. An answer that says anything else is not an empty delta.
 */
function emptiness({ status, body, text }: Answer): 'said' | 'silent' | null {
  if (status === 204) return 'said';
  if (body.length === 0) return 'silent';
  const value = text === '' ? null : parsed(Buffer.from(text));
  if (Array.isArray(value)) return value.length === 0 ? 'silent' : null;
  const fields = fieldsOf(value);
  const { items, num_items, total_pages } = fields;
  // Lua and PHP write an empty array as `{}`, too.
  const isEmpty = typeof items === 'object' ? Object.keys(items ?? []).length === 0 : !isFilled(items);
  if (!isEmpty || isFilled(num_items) || Number(total_pages ?? 0) > 1 || doubtsIn(fields).length > 0) return null;
  if (num_items != null) return 'said';
  return 'items' in fields ? 'silent' : null;
}

/** The first page of a delta without changes, for an answer that is not a page. */
function emptyDelta(answer: Answer, { page, perPage }: Window): PageResponse {
  const empty = { num_items: 0, page, per_page: perPage, total_pages: 0, items: [] };
  return pageOf({ ...answer, body: new TextEncoder().encode(JSON.stringify(empty)) });
}

function detailQuery({ includeDetails, currency, currencyParam }: ProductSettings): URLSearchParams {
  const query = new URLSearchParams();
  if (includeDetails.length > 0) query.set('include_details', includeDetails.join(','));
  if (currency.length > 0) query.set(currencyParam, currency.join(','));
  return query;
}

const GET = { method: 'GET', format: 'page', token: 'if-known', repeatable: true } as const;

/**
 * Reads one window of the catalog, or of what changed in a time range: `GET /v4/products` (interface, 4.4). Bytes that are
 * not UTF-8 reject one item, not the page. A delta may be empty in any form (`emptiness`). Times are milliseconds since
 * 1970; null: no limit.
 */
export function readProducts(
  { window, from, until = null }: Pick<FetchTask, 'window' | 'from'> & { readonly until?: number | null },
  settings: ProductSettings,
): Operation<PageResponse> {
  const query = new URLSearchParams({
    [settings.pageParam]: String(window.page),
    [settings.perPageParam]: String(window.perPage),
  });
  if (from !== null) query.set('from', new Date(from).toISOString());
  if (until !== null) query.set(settings.untilParam, new Date(until).toISOString());
  for (const [name, value] of detailQuery(settings)) query.set(name, value);
  const mayBeEmpty = from !== null && window.page === 1;
  const read = (answer: Answer) =>
    mayBeEmpty && emptiness(answer) !== null ? emptyDelta(answer, window) : pageOf(answer);
  return { ...GET, path: '/v4/products', query, read };
}

/**
 * Reads the first page of a delta. `isMissing`: nothing was said of any change. A service may answer 404 with an error of
 * its own if nothing changed, or nothing at all.
 */
export function readDelta(
  asked: Pick<FetchTask, 'window' | 'from'>,
  settings: ProductSettings,
): Operation<{ readonly page: PageResponse; readonly isMissing: boolean }> {
  const operation = readProducts(asked, settings);
  return {
    ...operation,
    accepts: [404],
    read: (answer) => {
      const { refusal, text, hide, body } = answer;
      const isEmpty = emptiness(answer);
      if (refusal === undefined) return { page: operation.read(answer), isMissing: isEmpty === 'silent' };
      // A plain text, and `message` alone, may come from a proxy.
      const isSaid = isXml(text) ? messageIn(text, hide).text !== '' : errorsIn(fieldsOf(parsed(body))).length > 0;
      const isOwn = refusal.code === 'SOURCE_NOT_SERVICE' && (isSaid || (body.length > 0 && isEmpty !== null));
      if (!isOwn) throw refusal;
      return { page: emptyDelta(answer, asked.window), isMissing: true };
    },
  };
}

/** Reads one product, such as `/v4/products/:vbid`; the body is empty if the service does not know it. */
export function readProduct(path: string, vbid: string, settings: ProductSettings): Operation<PageResponse> {
  return {
    ...GET,
    path,
    accepts: [404, 410],
    values: { vbid },
    query: detailQuery(settings),
    read: (answer) => {
      const { refusal } = answer;
      // "Catalog not found" says nothing about the product.
      if (refusal?.code === 'SOURCE_AUTH') throw refusal;
      if (refusal !== undefined) return pageOf({ ...answer, body: new Uint8Array() });
      // A good status without a product does not say that there is none.
      if (answer.body.length === 0) throw bodyError('the answer has no body');
      if (!isUtf8(answer.body)) throw notUtf8();
      return pageOf(answer);
    },
  };
}
