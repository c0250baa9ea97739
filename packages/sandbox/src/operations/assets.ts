import * as z from 'zod';
import { type AssetRequest, assetCreation, assetId, assetUpdate } from '../assets/asset-fields.ts';
import type { Asset } from '../assets/kept-asset.ts';
import { assetResponse, assetResponseSchema } from '../assets/response.ts';
import { unknownSkus } from '../assets/variants.ts';
import { parseJson } from '../http/body.ts';
import type { Operation, OperationRequest } from '../http/operation.ts';
import { jsonReply, Rejection, type Reply } from '../http/reply.ts';
import { validate } from '../http/validate.ts';
import type { Stores } from '../sandbox-stores.ts';

const pathValues = z.object({ vbid: assetId });

/**
 * Creates or updates an asset: interface, section 4.1.
 * @param vbid null: it is generated
 * @rule 4.1-2, 4.1-8..9, 4.1-11, 4.5-1..3, 5-5, 6-2, 7-2, 9-1..2
 */
function writeAsset(stores: Stores, vbid: string | null, { body, apiKey }: OperationRequest): Reply {
  const { assets, ingestions } = stores;
  if (vbid !== null) validate(pathValues, { vbid });
  const held = vbid === null ? null : assets.find(vbid);
  if (held !== null && held.owner !== apiKey) {
    throw new Rejection(403, `The caller is not the content owner of ${vbid}`);
  }
  const schema: z.ZodType<AssetRequest> = held === null ? assetCreation : assetUpdate;
  const request = validate(schema, parseJson(body));
  const { callback_url: callback, variants = [] } = request;
  if (callback !== undefined && !ingestions.mayCall(callback)) {
    throw new Rejection(422, 'callback_url: is a private address; allow it with --allow-private-callbacks');
  }
  const id = vbid ?? assets.nextVbid();
  const { prices = [] } = request.prices === undefined && held !== null ? assets.fieldsOf(held) : request;
  const unknown = unknownSkus(id, prices, variants);
  if (unknown.length > 0) throw new Rejection(422, unknown);
  const asset = assets.put(id, apiKey, request);
  if (request.url !== undefined) ingestions.announce(asset);
  return jsonReply(assetResponse(stores, asset));
}

/** Interface, 4.1, and books (4.5), which it only names: they have the request and the response of an asset. */
export function assetOperations(stores: Stores): Operation[] {
  const find = ({ values }: OperationRequest): Asset => {
    const asset = stores.assets.find(values.vbid ?? '');
    if (asset === null) throw new Rejection(404, 'Book not found');
    return asset;
  };
  const create = (request: OperationRequest) => writeAsset(stores, null, request);
  const write = (request: OperationRequest) => writeAsset(stores, request.values.vbid ?? '', request);
  const update = (request: OperationRequest) => writeAsset(stores, find(request).vbid, request);
  const read = (request: OperationRequest) => jsonReply(assetResponse(stores, find(request)));

  const common = { token: false, format: 'json', response: assetResponseSchema } as const;
  const asset = { ...common, method: 'PUT', section: '4.1', strictHeader: 'accept' } as const;
  const creation = { request: assetCreation, run: create };
  const book = { ...common, section: '4.5' } as const;
  const { booksPath: path } = stores.options;
  return [
    { ...asset, ...creation, path: '/v4/assets', summary: 'Create an asset, with a generated identifier' },
    {
      ...asset,
      path: '/v4/assets/:vbid',
      summary: 'Create or update an asset',
      values: pathValues,
      request: assetUpdate,
      run: write,
    },
    { ...book, ...creation, method: 'POST', path, summary: 'Create a book, with a generated identifier' },
    { ...book, method: 'PUT', path: `${path}/:vbid`, summary: 'Update a book', request: assetUpdate, run: update },
    { ...book, method: 'GET', path: `${path}/:vbid`, summary: 'Read a book', run: read },
  ];
}
