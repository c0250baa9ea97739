import { CatchwordError } from '../../errors.ts';
import { identifierIn } from '../errors/success-words.ts';
import { namingMade } from '../errors/uncertain-write.ts';
import { type CallOptions, callV4 } from '../http/json-request.ts';
import { pathPart } from '../http/path-segment.ts';
import type { Caller } from '../http/requester.ts';
import type { JsonAnswer } from '../http/response.ts';
import { optionsOf } from '../input/call-options.ts';
import { type AssetFields, checkAsset } from './asset-request.ts';
import { ASSET_FIELDS, type Asset, assetOf } from './asset-response.ts';

export interface AssetOptions extends CallOptions {
  /** Take the fields that only the service's own systems can set (interface, 2.1: internal). Default: refuse them. */
  readonly allowInternal?: boolean | undefined;
}

export interface PutAssetOptions extends AssetOptions {
  /** The asset is new, although it has an identifier: `imprint_id` and `title` are needed. Default: without one alone. */
  readonly create?: boolean | undefined;
}

/** An asset that was written; its identifier is known. */
export type WrittenAsset = Asset & { readonly vbid: string };

/**
 * Create and update of assets: `PUT /v4/assets/:vbid` (interface, 4.1). Fields are checked before anything is sent.
 *
 * Each throws CatchwordError USAGE naming every wrong field; SERVICE_FORBIDDEN where the API key does not own the asset
 * (403); SERVICE_INVALID with the service's own messages (422); NOT_FOUND; SOURCE_*; INTERRUPTED.
 */
export interface Assets {
  /** Creates or updates. Without `vbid` the service makes one up, and the caller is to store it. */
  put(vbid: string | null, fields: AssetFields, options?: PutAssetOptions): Promise<WrittenAsset>;
  /** Creates under an identifier of the service's making. */
  create(fields: AssetFields, options?: AssetOptions): Promise<WrittenAsset>;
  update(vbid: string, fields: AssetFields, options?: AssetOptions): Promise<WrittenAsset>;
}

export const OWNERS_ONLY =
  'Content owners only: use an API key that owns the asset, or that has access by set or manual rights.';

/** An answer without an identifier is no use: what was created could not be found again. */
function writtenAsset({ value, hide }: JsonAnswer, vbid: string | null, origin: string): WrittenAsset {
  // A word such as `saved` says that it is done, as an empty answer does.
  const isDone = value === undefined || typeof value === 'string';
  const asset = isDone ? assetOf(value === undefined ? {} : { text: value }) : assetOf(value);
  const known = asset?.vbid ?? vbid ?? identifierIn(value) ?? null;
  if (asset !== undefined && known !== null && known !== '') return { ...asset, vbid: known };
  const unknown = new CatchwordError('SERVICE_ERROR', `${origin} took the asset, but its answer is none with a vbid`, {
    hint: 'The asset may exist now: look for it in the catalog before trying again.',
  });
  throw namingMade(unknown, value, vbid === null ? 'vbid' : undefined, hide);
}

export function createAssets(caller: Caller): Assets {
  async function put(
    vbid: string | null,
    fields: AssetFields,
    options: PutAssetOptions | undefined,
  ): Promise<WrittenAsset> {
    const { allowInternal = false, create = vbid === null, signal } = optionsOf(options, ['allowInternal', 'create']);
    const path = vbid === null ? '/v4/assets' : `/v4/assets/${pathPart('vbid', vbid)}`;
    const body = checkAsset(fields, { create, allowInternal });
    const answer = await callV4(caller, {
      ...{ method: 'PUT', path, body, signal, whoMayCall: OWNERS_ONLY },
      ...{ freeform: true, fields: ASSET_FIELDS, creates: create ? 'vbid' : undefined },
      ...{ subject: vbid === null ? 'new asset' : `asset ${vbid}`, identified: !create },
      // Without an identifier each try would create one more; with a file, ingest it once more.
      repeatable: vbid !== null && body.url === undefined,
    });
    return writtenAsset(answer, vbid, caller.origin);
  }

  const own = (options: AssetOptions | undefined) => optionsOf(options, ['allowInternal']);
  return {
    put,
    create: async (fields, options) => await put(null, fields, { ...own(options), create: true }),
    update: async (vbid, fields, options) => await put(vbid, fields, { ...own(options), create: false }),
  };
}
