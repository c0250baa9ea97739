import type { FetchTask, PageResponse } from '../../catalog/page.ts';
import type { SourceConfig } from '../../config.ts';
import { header } from '../body.ts';
import type { Transport } from '../transport.ts';

type ProductSettings = Pick<
  SourceConfig,
  'pageParam' | 'perPageParam' | 'currencyParam' | 'includeDetails' | 'currency'
>;

/** `GET /v4/products` (interface, section 4.4): one window of the catalog, or of what changed since `task.from`. */
export async function readProducts(
  transport: Transport,
  settings: ProductSettings,
  { window, from }: Pick<FetchTask, 'window' | 'from'>,
  signal: AbortSignal,
): Promise<PageResponse> {
  const query = new URLSearchParams({
    [settings.pageParam]: String(window.page),
    [settings.perPageParam]: String(window.perPage),
  });
  if (from !== null) query.set('from', new Date(from).toISOString());
  if (settings.includeDetails.length > 0) query.set('include_details', settings.includeDetails.join(','));
  if (settings.currency.length > 0) query.set(settings.currencyParam, settings.currency.join(','));
  const { text, headers, bytes, requestedAt, receivedAt } = await transport.get('/v4/products', query, signal);
  const date = Date.parse(header(headers, 'date') ?? '');
  return { text, sourceTime: Number.isNaN(date) ? null : date, bytes, requestedAt, receivedAt };
}
