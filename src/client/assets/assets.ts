import { z } from 'zod';
import { CatchwordError } from '../../errors.ts';
import { checkFirst } from '../errors/uncertain-write.ts';
import type { ParsedAnswer } from '../http/answer.ts';
import type { Caller } from '../http/caller.ts';
import type { Operation } from '../http/operation.ts';
import { type CallOptions, callOptions, optionsOf } from '../input/call-options.ts';
import { type AssetBody, type AssetFields, checkAsset } from './asset-request.ts';
import { ASSET_FIELDS, type Asset, assetOf } from './asset-response.ts';

/** @rule 1-1, 1-4, 4.1-2..3, 4.1-8..10, 9-1 */
export interface AssetOptions extends CallOptions {
  /** Accept the fields that only internal systems of the service can set (interface, 2.1). Default: reject them. */
  readonly allowInternal?: boolean | undefined;
}

export interface PutAssetOptions extends AssetOptions {
  /** The asset is new: `imprint_id` and `title` are required. Default: true without an identifier. */
  readonly create?: boolean | undefined;
}

/** An asset that was written; its identifier is known. */
export type WrittenAsset = Asset & { readonly vbid: string };

/**
 * Create and update of assets: `PUT /v4/assets/:vbid` (interface, 4.1). Fields are validated before anything is sent.
 *
 * Each throws CatchwordError USAGE naming every invalid field; SERVICE_FORBIDDEN if the API key does not own the asset
 * (403); SERVICE_INVALID with the messages of the service (422); NOT_FOUND; SOURCE_*; INTERRUPTED.
 */
export interface Assets {
  /** Creates or updates. Without `vbid` the service assigns one, which the caller should store. */
  put(vbid: string | null, fields: AssetFields, options?: PutAssetOptions): Promise<WrittenAsset>;
  /** Creates with an identifier that the service assigns. */
  create(fields: AssetFields, options?: AssetOptions): Promise<WrittenAsset>;
  update(vbid: string, fields: AssetFields, options?: AssetOptions): Promise<WrittenAsset>;
}

export const OWNERS_ONLY =
  'Content owners only: use an API key that owns the asset, or that has access by set or manual rights.';

const allowInternal = z.boolean('must be true or false').default(false);
const WRITE_OPTIONS = callOptions({ allowInternal });
const PUT_OPTIONS = callOptions({ allowInternal, create: z.boolean('must be true or false').optional() });

interface AssetWrite {
  readonly vbid: string;
  readonly body: AssetBody;
}

/** Without an identifier, the asset could not be found again. */
function writtenAsset({ value, origin, status }: ParsedAnswer, known: string | undefined): WrittenAsset {
  const asset = assetOf(value);
  const vbid = asset.vbid || known;
  if (vbid !== undefined) return { ...asset, vbid };
  const error = new CatchwordError('SERVICE_ERROR', `${origin} answered without a vbid`, { status });
  throw checkFirst(error, CREATE);
}

const CREATE: Operation<AssetBody, WrittenAsset> = {
  method: 'PUT',
  path: '/v4/assets',
  format: 'json',
  token: false,
  // Each request creates another asset.
  repeatable: false,
  creates: 'vbid',
  fields: ASSET_FIELDS,
  whoMayCall: OWNERS_ONLY,
  request: (body) => ({ body, subject: 'new asset' }),
  read: (answer) => writtenAsset(answer, undefined),
};

const UPDATE: Operation<AssetWrite, WrittenAsset> = {
  method: 'PUT',
  path: '/v4/assets/:vbid',
  format: 'json',
  token: false,
  repeatable: true,
  fields: ASSET_FIELDS,
  whoMayCall: OWNERS_ONLY,
  request: ({ vbid, body }) => ({ values: { vbid }, body, subject: `asset ${vbid}` }),
  read: (answer, { vbid }) => writtenAsset(answer, vbid),
};

export function createAssets(caller: Caller): Assets {
  async function put(
    vbid: string | null,
    fields: AssetFields,
    options: PutAssetOptions | undefined,
  ): Promise<WrittenAsset> {
    const { create = vbid === null, signal, ...rules } = optionsOf(PUT_OPTIONS, options);
    const body = checkAsset(fields, { create, allowInternal: rules.allowInternal });
    if (vbid === null) return await caller.call(CREATE, body, signal);
    const operation = create ? { ...UPDATE, creates: 'vbid' } : UPDATE;
    // A second request would ingest the file twice.
    return await caller.call({ ...operation, repeatable: body.url === undefined }, { vbid, body }, signal);
  }

  return {
    put,
    create: async (fields, options) => await put(null, fields, { ...optionsOf(WRITE_OPTIONS, options), create: true }),
    update: async (vbid, fields, options) =>
      await put(vbid, fields, { ...optionsOf(WRITE_OPTIONS, options), create: false }),
  };
}
