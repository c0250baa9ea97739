import type { FetchTask, PageResponse } from '../../catalog/page.ts';
import type { SourceConfig } from '../../config.ts';
import { type Headers, header } from '../http/response-body.ts';
import type { Transport } from '../http/transport.ts';

export type ProductSettings = Pick<
  SourceConfig,
  'pageParam' | 'perPageParam' | 'untilParam' | 'currencyParam' | 'includeDetails' | 'currency' | 'lookupPath'
>;

/** The answer's `Date`, milliseconds since 1970; null where it is absent or unreadable. */
export function sourceDate(headers: Headers): number | null {
  const date = Date.parse(header(headers, 'date') ?? '');
  return Number.isNaN(date) ? null : date;
}

/** How long a cache kept the answer, by its `Age`, as a field of PageResponse. None where it does not say. */
function ageOf(headers: Headers): { ageMs?: number } {
  // A proxy behind a proxy may add a second one; each is a whole number of seconds.
  const ages = (header(headers, 'age') ?? '').split(',').map((text) => text.trim());
  const known = ages.filter((text) => /^\d{1,9}$/.test(text)).map(Number);
  return known.length === 0 ? {} : { ageMs: Math.max(...known) * 1_000 };
}

export function detailQuery(
  settings: Pick<ProductSettings, 'includeDetails' | 'currency' | 'currencyParam'>,
): URLSearchParams {
  const query = new URLSearchParams();
  if (settings.includeDetails.length > 0) query.set('include_details', settings.includeDetails.join(','));
  if (settings.currency.length > 0) query.set(settings.currencyParam, settings.currency.join(','));
  return query;
}

/** Query of `GET /v4/products` (interface, section 4.4). */
export function windowQuery(
  settings: Omit<ProductSettings, 'lookupPath'>,
  { window, from, until = null }: Pick<FetchTask, 'window' | 'from'> & { readonly until?: number | null },
): URLSearchParams {
  const query = new URLSearchParams({
    [settings.pageParam]: String(window.page),
    [settings.perPageParam]: String(window.perPage),
  });
  if (from !== null) query.set('from', new Date(from).toISOString());
  if (until !== null) query.set(settings.untilParam, new Date(until).toISOString());
  for (const [name, value] of detailQuery(settings)) query.set(name, value);
  return query;
}

/**
 * `GET /v4/products` (interface, section 4.4): one window of the catalog, or of what changed since `task.from`. Bytes that are
 * not UTF-8 are kept in its text (see `textOfBytes`).
 */
export async function readProducts(
  transport: Transport,
  settings: ProductSettings,
  task: Pick<FetchTask, 'window' | 'from'>,
  signal: AbortSignal,
): Promise<PageResponse> {
  const query = windowQuery(settings, task);
  const { text, headers, bytes, requestedAt, receivedAt } = await transport.get(
    '/v4/products',
    query,
    signal,
    [],
    true,
  );
  return { text, sourceTime: sourceDate(headers), bytes, requestedAt, receivedAt, ...ageOf(headers) };
}

/**
 * Point lookup (`CATCHWORD_LOOKUP_PATH`): one product by its `vbid`.
 * @returns the item's text; empty where the service says that there is no such product
 */
export async function readProduct(
  transport: Transport,
  settings: ProductSettings,
  vbid: string,
  signal: AbortSignal,
): Promise<PageResponse> {
  const path = (settings.lookupPath ?? '').replace(':vbid', encodeURIComponent(vbid));
  const answer = await transport.get(path, detailQuery(settings), signal, [404]);
  const { status, text, headers, bytes, requestedAt, receivedAt } = answer;
  const found = status === 404 ? '' : text;
  return { text: found, sourceTime: sourceDate(headers), bytes, requestedAt, receivedAt, ...ageOf(headers) };
}
