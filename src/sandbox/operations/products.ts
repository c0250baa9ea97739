import { z } from 'zod';
import { isoTime, parseIsoTime } from '../../iso-time.ts';
import { assetItem } from '../assets/item.ts';
import type { Assets } from '../assets/store.ts';
import type { Catalog, TimeRange } from '../catalog/catalog.ts';
import { itemRenderer, type RenderItem } from '../catalog/item.ts';
import { DETAIL_GROUPS, type DetailGroup, type ItemShape } from '../catalog/item-details.ts';
import type { Numbering } from '../catalog/product-numbers.ts';
import type { FaultKind } from '../http/faults.ts';
import type { Operation, OperationRequest } from '../http/operation.ts';
import { type Answer, errorAnswer } from '../http/response.ts';
import { KEY_WITHOUT_CATALOG } from '../options.ts';

/** What the operations on products need of the sandbox. */
export interface Shelf {
  readonly catalog: Catalog;
  readonly numbering: Numbering;
  /** What was written to products, and which were created by it. */
  readonly assets: Pick<Assets, 'indexOf' | 'written'>;
  readonly seed: number;
  readonly maxPerPage: number;
  /** Products of 2 KB. */
  readonly details: boolean;
}

const MAX_PER_PAGE = 1000;
/** Beyond it, `page * per_page` might lose digits. */
const MAX_PAGE = 1_000_000_000;

/** A value, or what is wrong with the parameter. */
type Parsed<T> = { readonly value: T } | { readonly error: string };

function whole(params: URLSearchParams, name: string, fallback: number, max: number): Parsed<number> {
  const text = params.get(name);
  if (text === null) return { value: fallback };
  const value = /^\d+$/.test(text) ? Number(text) : 0;
  return value >= 1 && value <= max ? { value } : { error: `${name}: a whole number from 1 to ${max} is needed` };
}

function time(params: URLSearchParams, name: string, fallback: number): Parsed<number> {
  const text = params.get(name);
  if (text === null) return { value: fallback };
  const value = parseIsoTime(text);
  if (value !== null) return { value };
  // An unencoded plus arrives as a space.
  const isPlus = / \d\d:\d\d$/.test(text) && parseIsoTime(text.replace(/ (?=\d\d:\d\d$)/, '+')) !== null;
  return { error: `${name}: an ISO 8601 time is needed${isPlus ? ', in which a plus is written %2B' : ''}` };
}

function list(params: URLSearchParams, name: string): string[] {
  return (params.get(name) ?? '').split(',').filter((item) => item !== '');
}

function groups(params: URLSearchParams): Parsed<ReadonlySet<DetailGroup>> {
  const names = list(params, 'include_details');
  const known = DETAIL_GROUPS.filter((group) => names.includes(group));
  const unknown = names.find((name) => !DETAIL_GROUPS.some((group) => group === name));
  return unknown === undefined
    ? { value: new Set(known) }
    : { error: `include_details: ${unknown} is none of ${DETAIL_GROUPS.join(', ')}` };
}

function currencies(params: URLSearchParams): Parsed<ReadonlySet<string> | null> {
  const codes = list(params, 'currency');
  return codes.every((code) => /^[A-Z]{3}$/.test(code))
    ? { value: codes.length === 0 ? null : new Set(codes) }
    : { error: 'currency: ISO 4217 codes, comma-separated, are needed' };
}

/** @returns how to render the items, as `include_details` and `currency` ask; or the answer that refuses them */
export function itemsFor(shelf: Shelf, params: URLSearchParams): RenderItem | Answer {
  const included = groups(params);
  const priced = currencies(params);
  if ('error' in included) return errorAnswer(422, included.error);
  if ('error' in priced) return errorAnswer(422, priced.error);
  const shape: ItemShape = { details: shelf.details, groups: included.value, currencies: priced.value };
  const own = itemRenderer(shelf.seed, shelf.numbering, shape);
  const withVariants = itemRenderer(shelf.seed, shelf.numbering, { ...shape, details: true });
  const { written } = shelf.assets;
  return (index, version, withdrawn) => {
    const asset = written.get(index);
    if (asset === undefined) return own(index, version, withdrawn);
    if (!asset.generated) return assetItem(asset, null, shape, withdrawn);
    // Channel identifiers are told of in variants, which a lean item has not.
    const full = asset.channelIds.size > 0 ? withVariants(index, version, false) : null;
    return assetItem(asset, { text: own(index, version, false), full }, shape, withdrawn);
  };
}

function rangeOf(params: URLSearchParams): Parsed<TimeRange | null> {
  const from = time(params, 'from', Number.NEGATIVE_INFINITY);
  const until = time(params, 'until', Number.POSITIVE_INFINITY);
  if ('error' in from) return from;
  if ('error' in until) return until;
  return { value: params.has('from') || params.has('until') ? { from: from.value, until: until.value } : null };
}

/**
 * `GET /v4/products`: one page of the listing, or of what was updated `from` … `until` (both inclusive), oldest update
 * first. Withdrawn products are told of in the latter (see the catalog's option for the former).
 * @param fault `wrong-page` and `short-page` are made here
 */
function listProducts(shelf: Shelf, params: URLSearchParams, fault: FaultKind | null): Answer {
  const asked = whole(params, 'page', 1, MAX_PAGE);
  const size = whole(params, 'per_page', MAX_PER_PAGE, MAX_PER_PAGE);
  const range = rangeOf(params);
  if ('error' in asked) return errorAnswer(422, asked.error);
  if ('error' in size) return errorAnswer(422, size.error);
  if ('error' in range) return errorAnswer(422, range.error);
  const render = itemsFor(shelf, params);
  if (typeof render !== 'function') return render;

  const perPage = Math.min(size.value, shelf.maxPerPage);
  const page = fault !== 'wrong-page' ? asked.value : asked.value === 1 ? 2 : asked.value - 1;
  const items: string[] = [];
  const count = shelf.catalog.list(range.value, (page - 1) * perPage, perPage, (index, version, withdrawn) => {
    items.push(render(index, version, withdrawn));
  });
  if (fault === 'short-page') items.length -= Math.ceil(items.length / 10);
  const envelope = `"num_items":${count},"page":${page},"per_page":${perPage},"total_pages":${Math.ceil(count / perPage)}`;
  return { status: 200, body: `{${envelope},"items":[${items.join(',')}]}` };
}

/** `GET /v4/products/:vbid`: the product, withdrawn ones too until they are gone. */
function readProduct(shelf: Shelf, vbid: string, params: URLSearchParams): Answer {
  const render = itemsFor(shelf, params);
  if (typeof render !== 'function') return render;
  const index = shelf.assets.indexOf(vbid);
  const product = index === null ? null : shelf.catalog.find(index);
  if (product === null) return errorAnswer(404, `Product ${vbid} not found`);
  return { status: 200, body: render(product.index, product.version, product.withdrawn) };
}

const shapeQuery = z.object({
  include_details: z
    .string()
    .optional()
    .describe(`comma-separated: ${DETAIL_GROUPS.join(', ')}`),
  currency: z.string().optional().describe('ISO 4217 codes, comma-separated'),
});
const pageQuery = shapeQuery.extend({
  page: z.int().min(1).max(MAX_PAGE).default(1),
  per_page: z.int().min(1).max(MAX_PER_PAGE).default(MAX_PER_PAGE),
  from: isoTime.optional().describe('updates since; without a zone it is UTC'),
  until: isoTime.optional().describe('updates until; without a zone it is UTC'),
});
const isbn = z.string().nullable();
/** An oddity of services: see `details.ts`. */
const isbnOrNumber = z.union([isbn, z.int()]);
const item = z.looseObject({
  vbid: z.string(),
  identifiers: z.looseObject({ print_isbn_canonical: isbnOrNumber, eisbn_canonical: isbn }),
  distributable: z.boolean().optional(),
});
const envelope = z.object({
  num_items: z.int(),
  page: z.int(),
  per_page: z.int(),
  total_pages: z.int(),
  items: z.array(item),
});

/** The catalog: interface, sections 2.5 and 4.4; the point lookup is not shown there. */
export function productOperations(shelf: Shelf): Operation[] {
  const kept = (operate: (request: OperationRequest) => Answer) => (request: OperationRequest) =>
    request.apiKey === KEY_WITHOUT_CATALOG ? errorAnswer(500, 'Catalog not found') : operate(request);
  const common = { method: 'GET', section: '4.4', token: true, format: 'json' } as const;
  return [
    {
      ...common,
      path: '/v4/products',
      summary: 'Read all products, or the updates since a time',
      query: pageQuery,
      response: envelope,
      names: 'content-type',
      faults: true,
      operate: kept(({ params, fault }) => listProducts(shelf, params, fault)),
    },
    {
      ...common,
      path: '/v4/products/:vbid',
      summary: 'Read one product',
      query: shapeQuery,
      response: item,
      operate: kept(({ values, params }) => readProduct(shelf, values.vbid ?? '', params)),
    },
  ];
}
