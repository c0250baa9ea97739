import type { Clock } from '@catchword/base/clock';
import { CatchwordError } from '@catchword/base/errors';
import type { FetchTask, PageResponse } from '@catchword/catalog/page-types';
import { validatePage } from '@catchword/catalog/validate-page';
import type { Pacer } from '@catchword/pace/pacer';
import type { SourceConfig } from '@catchword/settings/config';
import { withToken } from './auth/access-token.ts';
import { connect } from './client-connection.ts';
import { callOnce, type Operation } from './http/caller.ts';
import { prepare } from './http/exchange.ts';
import { readDelta, readProduct, readProducts } from './products/product-operations.ts';

/** Whether a product can have an address of its own: `.` and `..` would lead to another one. */
export function canLookUp(vbid: string): boolean {
  return vbid !== '.' && vbid !== '..';
}

/** `hide` masks what the service says in a page; without it, nothing is masked. */
export type CatalogClient = Pick<Made, 'read' | 'close'> & Partial<Pick<Made, 'hide'>>;
type Made = ReturnType<typeof createCatalogClient>;

/**
 * Reads the catalog for the mirror: one request for each call, and further ones to renew the access token or to check a 404.
 * @param pacer keeps the pace of these further requests; default: they are sent at once
 */
export function createCatalogClient(config: SourceConfig, clock: Clock, pacer?: Pacer) {
  const connection = connect(config, null, clock, pacer);
  const { transport, tokens } = connection;

  async function ask<Result>(operation: Operation<Result>, signal: AbortSignal) {
    const prepared = prepare(operation);
    // The turn that the caller waited for is over if the token is renewed first.
    let needsTurn = tokens.isRenewing() || (tokens.current() === undefined && tokens.fetchable);
    return await withToken(tokens, signal, async () => {
      if (needsTurn) await pacer?.acquire(signal);
      needsTurn = true;
      return await callOnce(transport, prepared, signal);
    });
  }

  /** A 404 is an empty delta only if the list is at the same address, and the answer stays: else it would hide changes. */
  async function firstOfDelta(task: FetchTask, signal: AbortSignal): Promise<PageResponse> {
    const delta = readDelta(task, config);
    const first = await ask(delta, signal);
    if (!first.isMissing) return first.page;
    const window = { page: 1, perPage: 1 };
    await pacer?.acquire(signal);
    const { body } = await ask(readProducts({ window, from: null }, config), signal);
    validatePage(body, window);
    await pacer?.acquire(signal);
    return (await ask(delta, signal)).page;
  }

  return {
    /**
     * Requests the window of the task, or its one product. The caller keeps the pace, retries, and validates the answer.
     * @throws CatchwordError SOURCE_*, SERVICE_TOKEN, INTERRUPTED
     */
    read: async (task: FetchTask, signal: AbortSignal): Promise<PageResponse> => {
      const { vbid, window, from } = task;
      if (vbid === undefined && from !== null && window.page === 1) return await firstOfDelta(task, signal);
      if (vbid === undefined) return await ask(readProducts(task, config), signal);
      if (!canLookUp(vbid)) {
        const message = `a product called ${vbid} has no address that it could be looked up by`;
        throw new CatchwordError('SOURCE_REFUSED', message);
      }
      return await ask(readProduct(config.lookupPath ?? '', vbid, config), signal);
    },
    hide: transport.hide,
    close: connection.close,
  };
}
