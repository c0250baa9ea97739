import { z } from 'zod';
import { type Asset, buildStatusOf, onSaleOf } from '../assets/asset.ts';
import { assetCreation, assetId, assetUpdate } from '../assets/fields.ts';
import type { Ingestions } from '../assets/ingestion.ts';
import { readAssetRequest } from '../assets/read-request.ts';
import { assetResponse } from '../assets/response.ts';
import { assetResponseSchema } from '../assets/response-schema.ts';
import type { Assets } from '../assets/store.ts';
import { strangeSkus } from '../assets/variants.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { Operation, OperationRequest } from '../http/operation.ts';
import { type Answer, errorAnswer } from '../http/response.ts';
import { judge } from '../http/validate.ts';
import type { Timeline } from '../journal/timeline.ts';

/** What the operations on assets need of the sandbox. */
export interface Library {
  readonly assets: Assets;
  readonly catalog: Catalog;
  readonly ingestions: Ingestions;
  readonly time: Timeline;
  readonly allowPrivateCallbacks: () => boolean;
}

const pathValues = z.object({ vbid: assetId });

/** The asset as it stands now: interface, section 2.2. */
export function answerAsset(library: Library, asset: Asset): Answer {
  const { assets, catalog, time } = library;
  const state = catalog.find(asset.index);
  const identifiers = assets.identifiersOf(asset);
  const fields = assets.fieldsOf(asset);
  const living = state !== null && !state.withdrawn;
  const soon = onSaleOf(asset.fields).from > time.now();
  const distribution = living ? 'distributed' : soon ? 'initialized' : 'withdrawn';
  const standing = { fields, identifiers, build: buildStatusOf(asset, time.now()), distribution } as const;
  return { status: 200, body: JSON.stringify(assetResponse(asset, standing)) };
}

/**
 * Creates, or updates, an asset: interface, section 4.1.
 * @param vbid null: one is generated
 */
export function writeAsset(library: Library, vbid: string | null, { body, apiKey }: OperationRequest): Answer {
  const { assets, ingestions, allowPrivateCallbacks } = library;
  const named = vbid === null ? null : judge(pathValues, { vbid }, '/');
  if (named !== null && 'wrong' in named) return errorAnswer(422, named.wrong);
  const held = vbid === null ? null : assets.find(vbid);
  if (held !== null && held.owner !== apiKey) {
    return errorAnswer(403, `The caller is not the content owner of ${vbid}`);
  }
  const read = readAssetRequest(body, { creates: held === null, allowPrivateCallbacks: allowPrivateCallbacks() });
  if ('wrong' in read) return errorAnswer(422, read.wrong);
  const request = read.asked;
  const id = vbid ?? assets.nextVbid();
  const { prices = [] } = request.prices === undefined && held !== null ? assets.fieldsOf(held) : request;
  const strange = strangeSkus(id, vbid !== null, prices, request.variants ?? []);
  if (strange.length > 0) return errorAnswer(422, strange);
  const asset = assets.put(id, apiKey, request);
  if (request.url !== undefined) ingestions.announce(asset);
  return answerAsset(library, asset);
}

/** `PUT /v4/assets/:vbid`; without the vbid, an EAN is generated. */
export function assetOperations(library: Library): Operation[] {
  const common = {
    method: 'PUT',
    section: '4.1',
    token: false,
    format: 'json',
    names: 'accept',
    response: assetResponseSchema,
  } as const;
  return [
    {
      ...common,
      path: '/v4/assets',
      summary: 'Create an asset, with an identifier that is generated',
      request: assetCreation,
      operate: (request) => writeAsset(library, null, request),
    },
    {
      ...common,
      path: '/v4/assets/:vbid',
      summary: 'Create or update an asset',
      values: pathValues,
      request: assetUpdate,
      operate: (request) => writeAsset(library, request.values.vbid ?? '', request),
    },
  ];
}
