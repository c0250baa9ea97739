import type { FetchTask, PageResponse } from '../catalog/page.ts';
import type { Clock } from '../clock.ts';
import type { SourceConfig } from '../config.ts';
import { readProduct, readProducts } from './operations/products.ts';
import { createTransport } from './transport.ts';

/** The service's catalog. One call is one request; whoever calls decides about pace and about trying again. */
export interface CatalogClient {
  /**
   * Asks for the task's window, or for its one product.
   * @returns the answer as text, not yet validated
   * @throws CatchwordError SOURCE_*, INTERRUPTED
   */
  read(task: FetchTask, signal: AbortSignal): Promise<PageResponse>;
  close(): Promise<void>;
}

export function createCatalogClient(config: SourceConfig, clock: Clock): CatalogClient {
  const transport = createTransport({
    baseUrl: config.baseUrl,
    apiKey: config.apiKey,
    accessToken: config.accessToken,
    apiKeyHeader: config.apiKeyHeader,
    accessTokenHeader: config.accessTokenHeader,
    timeoutMs: config.requestTimeoutMs,
    connections: config.concurrency,
    clock,
  });
  return {
    read: (task, signal) =>
      task.vbid === undefined
        ? readProducts(transport, config, task, signal)
        : readProduct(transport, config, task.vbid, signal),
    close: () => transport.close(),
  };
}
