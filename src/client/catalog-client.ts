import type { FetchTask, PageResponse } from '../catalog/page.ts';
import type { Clock } from '../clock.ts';
import type { SourceConfig } from '../config.ts';
import type { Pacer } from '../pacer.ts';
import { withToken } from './auth/access-token.ts';
import { connect } from './connection.ts';
import { saidInAnswer } from './errors/error-body.ts';
import { serviceError } from './errors/service-error.ts';
import { CATALOG_FIELDS, type Transport } from './http/transport.ts';
import { readProduct, readProducts } from './products/product-requests.ts';

/**
 * The service's catalog. One call is one request, and some more where another access token was needed. The caller decides
 * when the first request is made, and about retries.
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

/** @param pacer keeps the pace of the requests that a new access token takes; default: they are made at once */
export function createCatalogClient(config: SourceConfig, clock: Clock, pacer?: Pacer): CatalogClient {
  const connection = connect(config, null, clock, pacer);
  const { transport, tokens } = connection;

  /** The caller's turn is for a request that is made at once. */
  function isLate(): boolean {
    return tokens.isRenewing() || (tokens.current() === undefined && tokens.fetchable);
  }

  return {
    read: (task, signal) => {
      let needsTurn = isLate();
      return withToken(tokens, signal, async () => {
        if (needsTurn) await pacer?.acquire(signal);
        needsTurn = true;
        const page =
          task.vbid === undefined
            ? await readProducts(transport, config, task, signal)
            : await readProduct(transport, config, task.vbid, signal);
        if (page.text.length < MAX_ERROR) refuseToken(page.text, transport);
        return page;
      });
    },
    close: () => connection.close(),
  };
}
