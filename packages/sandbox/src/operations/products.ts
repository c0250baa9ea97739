import { isoTime, parseIsoTime } from '@catchword/base/iso-time';
import { recordOf } from '@catchword/base/record-of';
import * as z from 'zod';
import { KEY_WITHOUT_CATALOG } from '../accounts/directory.ts';
import { assetItem } from '../assets/asset-item.ts';
import { DETAIL_GROUPS, type ItemShape, itemRenderer, type RenderItem } from '../catalog/catalog-item.ts';
import type { Product } from '../catalog/product-states.ts';
import type { Operation, OperationRequest } from '../http/operation.ts';
import { Rejection, type Reply } from '../http/reply.ts';
import { validate } from '../http/validate.ts';
import type { Stores } from '../sandbox-stores.ts';

const MAX_PER_PAGE = 1000;
/** Above it, `page * per_page` could lose digits. */
const MAX_PAGE = 1_000_000_000;
const LINES_AT_ONCE = 1000;

function split(text: string): string[] {
  return text.split(',').filter((item) => item !== '');
}

function unknownGroup(text: string): string | undefined {
  return split(text).find((name) => !DETAIL_GROUPS.some((group) => group === name));
}

function whole(max: number) {
  const error = `must be a whole number from 1 to ${max}`;
  return z.coerce.number({ error }).int({ error }).min(1, { error }).max(max, { error });
}

/** A plus that is not encoded arrives as a space. */
function timeError({ input }: { readonly input?: unknown }): string {
  const plus = / (?=\d\d:\d\d$)/;
  const isPlus = plus.test(String(input)) && parseIsoTime(String(input).replace(plus, '+')) !== null;
  return `must be an ISO 8601 time${isPlus ? '; write a plus as %2B' : ''}`;
}
const time = z.union(isoTime.options, { error: timeError }).transform((text) => parseIsoTime(text) ?? 0);

const shapeQuery = z.object({
  include_details: z
    .string()
    .refine((text) => unknownGroup(text) === undefined, {
      error: ({ input }) => `${unknownGroup(String(input))} is unknown; use ${DETAIL_GROUPS.join(', ')}`,
    })
    .default('')
    .describe(`comma-separated: ${DETAIL_GROUPS.join(', ')}`),
  currency: z
    .string()
    .regex(/^([A-Z]{3}(,|$))*$/, 'must be ISO 4217 codes, comma-separated')
    .default('')
    .describe('ISO 4217 codes, comma-separated'),
});
const pageQuery = shapeQuery.extend({
  page: whole(MAX_PAGE).default(1),
  per_page: whole(MAX_PER_PAGE).default(MAX_PER_PAGE),
  from: time.optional().describe('updates since; without a zone it is UTC'),
  until: time.optional().describe('updates until; without a zone it is UTC'),
});

type Source = Pick<Stores, 'options' | 'numbering'> & { readonly assets: Pick<Stores['assets'], 'written'> };

/** Returns how to render items with the `include_details` and `currency` of a query. @throws Rejection 422 */
function itemsFor({ options, numbering, assets }: Source, params: URLSearchParams): RenderItem {
  const { include_details, currency } = validate(shapeQuery, Object.fromEntries(params));
  const currencies = currency === '' ? null : new Set(split(currency));
  const groups = new Set(DETAIL_GROUPS.filter((group) => split(include_details).includes(group)));
  const shape: ItemShape = { details: options.details, groups, currencies };
  const render = itemRenderer(options.seed, numbering, shape);
  const renderVariants = itemRenderer(options.seed, numbering, { ...shape, details: true });
  return (product) => {
    const asset = assets.written.get(product.index);
    if (asset === undefined) return render(product);
    const text = asset.generated ? render({ ...product, withdrawn: false }) : '{}';
    const priced = asset.generated && asset.channelIds.size > 0 ? renderVariants(product) : text;
    return assetItem(asset, text, priced, shape, product.withdrawn);
  };
}

/**
 * `GET /_sandbox/truth`: the products on sale at the moment of the request, in the order of the list, as lines of JSON.
 * Only their versions are noted at once; the text is made while it is read. @throws Rejection
 */
export function truth(stores: Stores, params: URLSearchParams): Iterable<string> {
  const written = new Map(stores.assets.written);
  const render = itemsFor({ ...stores, assets: { written } }, params);
  return linesOf(stores.catalog.list(null, 0, Number.POSITIVE_INFINITY).products, render);
}

function* linesOf(products: readonly Product[], render: RenderItem): Iterable<string> {
  for (let start = 0; start < products.length; start += LINES_AT_ONCE) {
    const piece = products.slice(start, start + LINES_AT_ONCE);
    yield piece.map((product) => `${render(product)}\n`).join('');
  }
}

/**
 * `GET /v4/products`: one page of the list, or of what was updated `from` … `until` (both included), oldest update first.
 * Only the latter includes withdrawn products. The faults `wrong-page` and `short-page` are made here.
 */
function listProducts(stores: Stores, { params, fault }: OperationRequest): Reply {
  const asked = validate(pageQuery, Object.fromEntries(params));
  const { from = Number.NEGATIVE_INFINITY, until = Number.POSITIVE_INFINITY } = asked;
  const range = asked.from === undefined && asked.until === undefined ? null : { from, until };
  const perPage = Math.min(asked.per_page, stores.options.maxPerPage);
  const page = fault !== 'wrong-page' ? asked.page : asked.page === 1 ? 2 : asked.page - 1;
  const { count, products } = stores.catalog.list(range, (page - 1) * perPage, perPage);
  const items = products.map(itemsFor(stores, params));
  if (fault === 'short-page') items.length -= Math.ceil(items.length / 10);
  const envelope = `"num_items":${count},"page":${page},"per_page":${perPage},"total_pages":${Math.ceil(count / perPage)}`;
  return { status: 200, body: `{${envelope},"items":[${items.join(',')}]}` };
}

/** `GET /v4/products/:vbid`: the product, including a withdrawn one until it is gone. */
function readProduct(stores: Stores, { values, params }: OperationRequest): Reply {
  const { vbid = '' } = values;
  const render = itemsFor(stores, params);
  const index = stores.assets.indexOf(vbid);
  const product = index === null ? null : stores.catalog.find(index);
  if (product === null) throw new Rejection(404, `Product ${vbid} not found`);
  return { status: 200, body: render(product) };
}

const isbn = z.string().nullable();
const item = z.looseObject({
  vbid: z.string(),
  identifiers: z.looseObject({
    /** A number is an oddity of services: see `catalog/catalog-item.ts`. */
    print_isbn_canonical: z.union([isbn, z.int()]),
    eisbn_canonical: isbn,
  }),
  distributable: z.boolean().optional(),
});
const totals = recordOf(z.int(), 'num_items', 'page', 'per_page', 'total_pages');
const envelope = z.object({ ...totals, items: z.array(item) });

/**
 * The catalog: interface, sections 2.5 and 4.4, which does not show the point lookup.
 * @rule 2.5-1, 4.4-1, 4.4-5..14, 8-2
 */
export function productOperations(stores: Stores): Operation[] {
  const withCatalog = (run: (stores: Stores, request: OperationRequest) => Reply) => (request: OperationRequest) => {
    if (request.apiKey === KEY_WITHOUT_CATALOG) throw new Rejection(500, 'Catalog not found');
    return run(stores, request);
  };
  const common = { method: 'GET', section: '4.4', token: true, format: 'json' } as const;
  return [
    {
      ...common,
      path: '/v4/products',
      summary: 'Read all products, or the updates since a time',
      query: pageQuery,
      response: envelope,
      strictHeader: 'content-type',
      faults: true,
      run: withCatalog(listProducts),
    },
    {
      ...common,
      path: '/v4/products/:vbid',
      summary: 'Read one product',
      query: shapeQuery,
      response: item,
      run: withCatalog(readProduct),
    },
  ];
}
