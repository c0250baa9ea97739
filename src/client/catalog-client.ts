import type { FetchTask, PageResponse } from '../catalog/page.ts';
import type { Clock } from '../clock.ts';
import type { SourceConfig } from '../config.ts';
import { CatchwordError } from '../errors.ts';
import type { Pacer } from '../pace/pacer.ts';
import { withToken } from './auth/access-token.ts';
import { connect } from './connection.ts';
import { callOnce, type Operation } from './http/caller.ts';
import { prepare } from './http/exchange.ts';
import { readProduct, readProducts } from './products/product-operations.ts';

/** Whether a product can have an address of its own: `.` and `..` would lead to another one. */
export function canLookUp(vbid: string): boolean {
  return vbid !== '.' && vbid !== '..';
}

export type CatalogClient = ReturnType<typeof createCatalogClient>;

/**
 * Reads the catalog for the mirror: one request for each call, plus those that renew the access token.
 * @param pacer keeps the pace of the requests that renew the access token; default: they are sent at once
 */
export function createCatalogClient(config: SourceConfig, clock: Clock, pacer?: Pacer) {
  const connection = connect(config, null, clock, pacer);
  const { transport, tokens } = connection;

  async function ask(operation: Operation<PageResponse>, signal: AbortSignal) {
    const prepared = prepare(operation);
    // The turn that the caller waited for is over if the token is renewed first.
    let needsTurn = tokens.isRenewing() || (tokens.current() === undefined && tokens.fetchable);
    return await withToken(tokens, signal, async () => {
      if (needsTurn) await pacer?.acquire(signal);
      needsTurn = true;
      return await callOnce(transport, prepared, signal);
    });
  }

  return {
    /**
     * Requests the window of the task, or its one product. The caller keeps the pace and retries.
     * @returns the answer as text, not yet validated
     * @throws CatchwordError SOURCE_*, SERVICE_TOKEN, INTERRUPTED
     */
    read: async ({ vbid, window, from }: FetchTask, signal: AbortSignal): Promise<PageResponse> => {
      if (vbid === undefined) return await ask(readProducts({ window, from }, config), signal);
      if (!canLookUp(vbid)) {
        const message = `a product called ${vbid} has no address that it could be looked up by`;
        throw new CatchwordError('SOURCE_REFUSED', message);
      }
      return await ask(readProduct(config.lookupPath ?? '', vbid, config), signal);
    },
    close: connection.close,
  };
}
