import { type Answer, errorAnswer } from '../answer.ts';
import { type Asset, buildStatusOf, onSaleOf } from '../assets/asset.ts';
import { assetUpdate, readAssetRequest } from '../assets/fields.ts';
import { fieldsOfGenerated } from '../assets/generated.ts';
import type { Ingestions } from '../assets/ingestion.ts';
import { canonicalFields } from '../assets/item.ts';
import { assetResponse, assetResponseSchema } from '../assets/response.ts';
import type { Assets } from '../assets/store.ts';
import type { Catalog } from '../catalog.ts';
import type { RenderItem } from '../item.ts';
import type { Operation, OperationRequest } from '../operation.ts';
import type { Timeline } from '../timeline.ts';

/** What the operations on assets need of the sandbox. */
export interface Library {
  readonly assets: Assets;
  readonly catalog: Catalog;
  readonly ingestions: Ingestions;
  readonly time: Timeline;
  readonly allowPrivateCallbacks: () => boolean;
  /** A product of the catalog's own with all its members. */
  readonly renderFull: RenderItem;
}

/** Letters too, and dashes: not every vbid is an ISBN. */
const VBID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** The asset as it stands now: interface, section 2.2. */
export function answerAsset(library: Library, asset: Asset): Answer {
  const { assets, catalog, time, renderFull } = library;
  const state = catalog.find(asset.index);
  const own = asset.generated ? fieldsOfGenerated(renderFull(asset.index, state?.version ?? 0, false)) : {};
  const identifiers = assets.identifiersOf(asset);
  const fields = { ...own, ...canonicalFields(asset), ...asset.fields };
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
  if (vbid !== null && !VBID.test(vbid)) {
    return errorAnswer(422, 'vbid: 1 to 64 letters, digits, dots, dashes and underscores are needed');
  }
  const held = vbid === null ? null : assets.find(vbid);
  if (held !== null && held.owner !== apiKey) {
    return errorAnswer(403, `The caller is not the content owner of ${vbid}`);
  }
  const request = readAssetRequest(body, { creates: held === null, allowPrivateCallbacks: allowPrivateCallbacks() });
  if (Array.isArray(request)) return errorAnswer(422, ...request);
  const asset = assets.put(vbid ?? assets.nextVbid(), apiKey, request);
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
    request: assetUpdate,
    response: assetResponseSchema,
  } as const;
  return [
    {
      ...common,
      path: '/v4/assets',
      summary: 'Create an asset, with an identifier that is generated',
      operate: (request) => writeAsset(library, null, request),
    },
    {
      ...common,
      path: '/v4/assets/:vbid',
      summary: 'Create or update an asset',
      operate: (request) => writeAsset(library, request.values.vbid ?? '', request),
    },
  ];
}
