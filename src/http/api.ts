import { usageError } from '@catchword/base/errors';
import { parseIsoTime } from '@catchword/base/iso-time';
import type { ChangeOp } from '@catchword/catalog/run-types';
import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import * as z from 'zod';
import { hitJson, productJson } from '../report/product-report.ts';
import { jsonOf } from '../shown/shown-row.ts';
import { STATUS, STATUS_SCHEMA } from '../shown/shown-status.ts';
import { seenStatus } from '../shown/status-seen.ts';
import { productAsOf } from '../store/history/history.ts';
import { isPosition, MISPLACED } from '../store/history/log-position.ts';
import { requireProduct } from '../store/rows/find-product.ts';
import { CHANGES, HITS, MIRRORED_PRODUCT, PRODUCTS } from './answers.ts';
import { addLists, type ListParts } from './api-lists.ts';
import { sendError } from './http-error.ts';
import { CHANGE_FILTERS } from './list-filters.ts';
import type { PageParts } from './pages/page-view.ts';
import { parameters, textParameter, wholeNumber } from './parameters.ts';
import { productPieces } from './product-list.ts';
import { APPROVED, VIEW_PARAMETERS, WHOLE } from './reader-views.ts';
import { sendPieces } from './response-writer.ts';
import { answering, sending } from './route-schema.ts';
import type { ChangeParts } from './sse/sse-route.ts';

const LIMIT = wholeNumber('How many to return at most.', 20, 1, 1000);
const NO_PARAMETERS = parameters({});
const STATUS_ROUTE = answering(STATUS_SCHEMA, {
  operationId: 'getStatus',
  summary: 'The state of the mirror',
  description: 'How fresh the mirror is, which processes are active, and what waits for a decision.',
  tags: ['mirror'],
  querystring: NO_PARAMETERS,
});
const PRODUCTS_ROUTE = sending(z.union([HITS, PRODUCTS]), {
  operationId: 'searchProducts',
  summary: 'Search products, or list those that match',
  description:
    'Finds products that are not removed. With `q`, it searches: of more than 5,000 that match, the best of the first 5,000 come. A search that takes longer than two seconds is refused with 503. With `where`, `fields` or both, it lists products by key: a page judges about 5,000 products, so it may have fewer than `limit`, even none; continue with `after` = `next` until that is null. For an exact copy, read all pages, then /api/changes after the `position` of the first page, with the same `where` and `fields`.',
  tags: ['mirror'],
  querystring: parameters({
    q: textParameter(
      'Words of title, contributors, publisher or identifiers, at most 16; all must match. `hist*` matches words with this beginning. Or a key or an ISBN.',
      (text) => text.trim() !== '',
      'Use /api/products?q=words.',
    )
      .meta({ example: 'history bridges' })
      .optional(),
    ...VIEW_PARAMETERS,
    after: z.string().optional().meta({ description: 'With `where` or `fields`: only products after this key.' }),
    approved: APPROVED,
    limit: LIMIT,
  }),
  errors: [404],
});
const PRODUCT_ROUTE = sending(MIRRORED_PRODUCT, {
  operationId: 'getProduct',
  summary: 'One product',
  description: 'Finds a product, also a removed one, by its key, or by an ISBN: 10 or 13 digits, print or electronic.',
  tags: ['mirror'],
  params: parameters({
    vbid: z.string().meta({ description: 'The key, or an ISBN.', example: '9788074089008' }),
  }),
  querystring: parameters({ approved: APPROVED }),
  errors: [404],
});
const isTime = (text: string): boolean => parseIsoTime(text) !== null;
const CHANGES_ROUTE = sending(CHANGES, {
  operationId: 'listChanges',
  summary: 'A page of the change log',
  description:
    'Changes after a number, the oldest first. Numbers have no gap until the log is pruned; of pruned changes the newest of each product stays. Continue with `after` = `next_id`: 409 then says that the position is not in this log, because the mirror was restored from a backup (`RESTORED`) or is another one (`OTHER_MIRROR`), or is of other `where` and `fields` (`OTHER_VIEW`). Discard what you have, and begin again with 0. A number is believed: `next` works as long as the log only grows.',
  tags: ['changes'],
  querystring: parameters({
    after: textParameter(
      'Return changes after this one: the `next_id` of the last page; or a number, such as 0.',
      isPosition,
      'Use the number of a change, or the next_id of a page.',
    ).default('0'),
    since: textParameter('Only changes since this time.', isTime, 'Use ISO 8601.').optional(),
    ...CHANGE_FILTERS,
    ...VIEW_PARAMETERS,
    approved: APPROVED,
    limit: wholeNumber('How many to return at most. A page of large products has fewer.', 1000, 1, 10_000),
  }),
  errors: [409],
});

type ApiOptions = ChangeParts & ListParts & Pick<PageParts, 'plans' | 'steps' | 'channels'>;

/** Serves what the commands print with `--json`. Each response shows one state of the file; a page of changes is read piece by piece. */
export function addApi(app: FastifyInstance, options: ApiOptions): void {
  const { store, state, steps, changes, views, plans, channels, ...parts } = options;
  const routes = app.withTypeProvider<ZodTypeProvider>();

  routes.get('/api/status', { schema: STATUS_ROUTE }, async () =>
    store.read(() => {
      const now = state();
      return jsonOf(STATUS, seenStatus(store, now, plans(store, now.nowMs), { channels }));
    }),
  );

  addLists(app, options);

  routes.get('/api/products', { schema: PRODUCTS_ROUTE }, async ({ query }, reply) => {
    const { q, after, approved, limit } = query;
    const view = await views.of(query);
    if (q !== undefined && view === WHOLE && (after ?? approved) === undefined)
      return (await steps.search(q, limit)).map(hitJson);
    if (q !== undefined || view === WHOLE) {
      const problem =
        q === undefined ? 'q is missing' : 'q: it does not go together with where, fields, after and approved';
      throw usageError(problem, 'Use /api/products?q=words, or where, fields and after.');
    }
    await sendPieces(reply, productPieces(store, steps, view, after ?? '', limit, changes.asOf(approved)), parts);
    return reply;
  });

  routes.get(
    '/api/products/:vbid',
    { schema: PRODUCT_ROUTE },
    async ({ params: { vbid }, query: { approved } }, reply) => {
      const row = requireProduct(store, vbid, 'Search with /api/products?q=words.');
      // As text: numbers of the source must not be rounded.
      const asOf = changes.asOf(approved);
      const found = asOf === undefined ? row : store.read(() => productAsOf(store, row, asOf));
      return reply.type('application/json; charset=utf-8').send(productJson(found));
    },
  );

  routes.get('/api/changes', { schema: CHANGES_ROUTE }, async ({ query }, reply) => {
    const { after, since, op, field, approved, limit } = query;
    const view = await views.of(query);
    const found = /^\d+$/.test(after) ? { seq: Number(after) } : changes.find(after, view.digest);
    if ('code' in found) {
      const hint = 'Discard what you have, and read again from 0.';
      return sendError(reply, { code: found.code, message: `after: ${MISPLACED[found.code]}`, hint });
    }
    const from = Math.max(found.seq, store.changes.seqAt(parseIsoTime(since ?? '') ?? 0));
    const filter = { op: op?.split(',') as ChangeOp[] | undefined, field: field?.split(',') };
    await sendPieces(reply, changes.page(from, limit, filter, view, changes.asOf(approved)), parts);
    return reply;
  });
}
