import type { FetchTask, PageResponse } from '../catalog/page.ts';
import type { Clock } from '../clock.ts';
import type { SourceConfig } from '../config.ts';
import { connect } from './connect.ts';
import { readProduct, readProducts } from './operations/products.ts';
import { serviceError } from './refusal.ts';
import { saidInAnswer } from './said.ts';
import { withToken } from './token.ts';
import { CATALOG_FIELDS, type Transport } from './transport.ts';

/**
 * The service's catalog. One call is one request, and one or two more where another access token was needed; whoever calls decides
 * about pace and about trying again.
 */
export interface CatalogClient {
  /**
   * Asks for the task's window, or for its one product.
   * @returns the answer as text, not yet validated
   * @throws CatchwordError SOURCE_*, SERVICE_TOKEN, INTERRUPTED
   */
  read(task: FetchTask, signal: AbortSignal): Promise<PageResponse>;
  close(): Promise<void>;
}

/** Characters. A page is longer, or quickly looked through. */
const MAX_ERROR = 2_048;

/** A 601 may come with any status (interface, section 7), a good one among them. */
function refuseToken(text: string, { origin, hiding }: Transport): void {
  if (!text.includes('601')) return;
  const said = saidInAnswer(text, CATALOG_FIELDS, hiding());
  if (said?.code === 601) throw serviceError(said, 200, origin);
}

export function createCatalogClient(config: SourceConfig, clock: Clock): CatalogClient {
  const connection = connect(config, null, clock);
  const { transport, tokens } = connection;
  return {
    read: (task, signal) =>
      withToken(tokens, signal, async () => {
        const page =
          task.vbid === undefined
            ? await readProducts(transport, config, task, signal)
            : await readProduct(transport, config, task.vbid, signal);
        if (page.text.length < MAX_ERROR) refuseToken(page.text, transport);
        return page;
      }),
    close: () => connection.close(),
  };
}
