import type { FastifyInstance, FastifyReply } from 'fastify';
import type { Plans } from '../catalog/tick.ts';
import type { Clock } from '../clock.ts';
import { CatchwordError, usageError } from '../errors.ts';
import { hitJson, productJson } from '../report/product.ts';
import { runJson } from '../report/run.ts';
import { statusOf } from '../report/status.ts';
import { findProduct } from '../store/find-product.ts';
import type { Store } from '../store/store.ts';
import type { ChangeFeed } from './change-feed.ts';
import { type PageParts, sendPieces } from './change-page.ts';
import { parametersOf, wholeNumber } from './parameters.ts';

const limitOf = ({ limit = '20' }: { readonly limit?: string }) => wholeNumber('limit', limit, 1, 1000);

/** Sends JSON as text: it contains the source's own bodies, whose numbers must not be rounded. */
function sendJson(reply: FastifyReply, text: string): FastifyReply {
  return reply.type('application/json; charset=utf-8').send(text);
}

export interface ApiOptions extends PageParts {
  readonly store: Store;
  readonly changes: ChangeFeed;
  readonly clock: Clock;
  /** When the schedule starts the next runs. */
  readonly plans: (nowMs: number) => Plans;
}

/** Serves what the commands print with `--json`. Each response shows one state of the file. */
export function addApi(app: FastifyInstance, { store, changes, plans, ...parts }: ApiOptions): void {
  const { clock } = parts;

  app.get('/api/status', async (request) => {
    parametersOf(request.query, []);
    const nowMs = clock.now();
    return store.read(() => statusOf(store, nowMs, plans(nowMs)));
  });

  app.get('/api/runs', async (request) => {
    const count = limitOf(parametersOf(request.query, ['limit']));
    return store.read(() => store.runs.list(count).map(runJson));
  });

  app.get('/api/products', async (request) => {
    const { q = '', ...rest } = parametersOf(request.query, ['q', 'limit']);
    const count = limitOf(rest);
    if (q.trim() === '') throw usageError('q is missing', 'Use /api/products?q=words.');
    return store.read(() => store.search(q, count).map(hitJson));
  });

  app.get<{ Params: { vbid: string } }>('/api/products/:vbid', async (request, reply) => {
    parametersOf(request.query, []);
    const { vbid } = request.params;
    const row = findProduct(store, vbid);
    if (row === undefined) {
      const message = `the mirror has no product ${JSON.stringify(vbid)}`;
      throw new CatchwordError('NOT_FOUND', message, { hint: 'Search with /api/products?q=words.' });
    }
    return sendJson(reply, productJson(row));
  });

  app.get('/api/changes', async (request, reply) => {
    const { after = '0', limit = '1000' } = parametersOf(request.query, ['after', 'limit']);
    const from = wholeNumber('after', after, 0);
    await sendPieces(reply, changes.page(from, wholeNumber('limit', limit, 1, 10_000)), parts);
    return reply;
  });
}
