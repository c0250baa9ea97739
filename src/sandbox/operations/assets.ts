import { z } from 'zod';
import { type Asset, buildStatusOf, onSaleOf } from '../assets/asset.ts';
import { isPrivateUrl } from '../assets/callback.ts';
import { type AssetRequest, assetCreation, assetId, assetUpdate } from '../assets/fields.ts';
import type { Ingestions } from '../assets/ingestion.ts';
import { assetResponse, assetResponseSchema } from '../assets/response.ts';
import type { Assets } from '../assets/store.ts';
import { unknownSkus } from '../assets/variants.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { parseJson } from '../http/body.ts';
import type { Operation, OperationRequest } from '../http/operation.ts';
import { jsonReply, Rejection, type Reply } from '../http/reply.ts';
import { validate } from '../http/validate.ts';
import type { Timeline } from '../journal/timeline.ts';

export interface Library {
  readonly assets: Assets;
  readonly catalog: Catalog;
  readonly ingestions: Ingestions;
  readonly time: Timeline;
  readonly allowPrivateCallbacks: () => boolean;
}

const pathValues = z.object({ vbid: assetId });

/** Replies with the asset as it is now: interface, section 2.2. */
function assetReply({ assets, catalog, time }: Library, asset: Asset): Reply {
  const product = catalog.find(asset.index);
  const soon = onSaleOf(asset.fields).from > time.now();
  const isLiving = product !== null && !product.withdrawn;
  const standing = {
    fields: assets.fieldsOf(asset),
    identifiers: assets.identifiersOf(asset),
    build: buildStatusOf(asset, time.now()),
    distribution: isLiving ? 'distributed' : soon ? 'initialized' : 'withdrawn',
  } as const;
  return jsonReply(assetResponse(asset, standing));
}

/**
 * Parses the fields that were sent. A private `callback_url` is reported with the other problems; the schema does not
 * know the option that allows it.
 */
function parseRequest(body: unknown, creates: boolean, allowPrivate: boolean): AssetRequest {
  const schema: z.ZodType<AssetRequest> = creates ? assetCreation : assetUpdate;
  const { callback_url: callback } = z
    .object({ callback_url: assetUpdate.shape.callback_url.catch(undefined) })
    .catch({})
    .parse(body);
  const isPrivate = !allowPrivate && callback !== undefined && isPrivateUrl(callback);
  const problem = 'callback_url: is a private address; allow it with --allow-private-callbacks';
  try {
    const request = validate(schema, body);
    if (!isPrivate) return request;
  } catch (error) {
    if (!isPrivate || !(error instanceof Rejection)) throw error;
    throw new Rejection(422, [...error.errors, problem]);
  }
  throw new Rejection(422, problem);
}

/** Creates or updates an asset: interface, section 4.1. @param vbid null: it is generated */
function writeAsset(library: Library, vbid: string | null, { body, apiKey }: OperationRequest): Reply {
  const { assets, ingestions, allowPrivateCallbacks } = library;
  if (vbid !== null) validate(pathValues, { vbid });
  const held = vbid === null ? null : assets.find(vbid);
  if (held !== null && held.owner !== apiKey) {
    throw new Rejection(403, `The caller is not the content owner of ${vbid}`);
  }
  const request = parseRequest(parseJson(body), held === null, allowPrivateCallbacks());
  const id = vbid ?? assets.nextVbid();
  const { prices = [] } = request.prices === undefined && held !== null ? assets.fieldsOf(held) : request;
  const unknown = unknownSkus(id, vbid !== null, prices, request.variants ?? []);
  if (unknown.length > 0) throw new Rejection(422, unknown);
  const asset = assets.put(id, apiKey, request);
  if (request.url !== undefined) ingestions.announce(asset);
  return assetReply(library, asset);
}

/** `PUT /v4/assets/:vbid`. Without the vbid, an EAN is generated. */
export function assetOperations(library: Library): Operation[] {
  const common = {
    method: 'PUT',
    section: '4.1',
    token: false,
    format: 'json',
    strictHeader: 'accept',
    response: assetResponseSchema,
  } as const;
  return [
    {
      ...common,
      path: '/v4/assets',
      summary: 'Create an asset, with an identifier that is generated',
      request: assetCreation,
      run: (request) => writeAsset(library, null, request),
    },
    {
      ...common,
      path: '/v4/assets/:vbid',
      summary: 'Create or update an asset',
      values: pathValues,
      request: assetUpdate,
      run: (request) => writeAsset(library, request.values.vbid ?? '', request),
    },
  ];
}

/** The interface has no version in these paths (section 9, rule 1); services have them with a version as well. */
const BOOK_PREFIXES = ['', '/v3', '/v4'] as const;

/** Books: interface, section 4.5, which only names them. Request and response are those of an asset: 2.1 and 2.2. */
export function bookOperations(library: Library): Operation[] {
  const find = ({ values }: OperationRequest): Asset => {
    const asset = library.assets.find(values.vbid ?? '');
    if (asset === null) throw new Rejection(404, 'Book not found');
    return asset;
  };
  const common = { section: '4.5', token: false, format: 'json', response: assetResponseSchema } as const;
  return BOOK_PREFIXES.flatMap((prefix): Operation[] => [
    {
      ...common,
      method: 'POST',
      path: `${prefix}/vital_books`,
      summary: 'Create a book, with an identifier that is generated',
      request: assetCreation,
      run: (request) => writeAsset(library, null, request),
    },
    {
      ...common,
      method: 'PUT',
      path: `${prefix}/vital_books/:vbid`,
      summary: 'Update a book',
      request: assetUpdate,
      run: (request) => writeAsset(library, find(request).vbid, request),
    },
    {
      ...common,
      method: 'GET',
      path: `${prefix}/vital_books/:vbid`,
      summary: 'Read a book',
      run: (request) => assetReply(library, find(request)),
    },
  ]);
}
