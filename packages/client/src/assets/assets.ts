import { CatchwordError } from '@catchword/base/errors';
import * as z from 'zod';
import { checkFirst } from '../errors/uncertain-write.ts';
import { MAX_IDENTIFIER, type ParsedAnswer } from '../http/answer.ts';
import type { Caller, Operation } from '../http/caller.ts';
import { type CallOptions, callOptions, type FieldsFor, optionsOf, UNCHECKED } from '../input/call-options.ts';
import type { OptionsOf } from '../input/request-fields.ts';
import { type AssetFields, checkAsset } from './asset-request.ts';
import { ASSET_FIELDS, type Asset, assetOf, isIdentifiedBy } from './asset-response.ts';

export type WrittenAsset = Asset & { readonly vbid: string };

export const OWNERS_ONLY =
  'Content owners only: use an API key that owns the asset, or that has access by set or manual rights.';

const WRITE = {
  ...UNCHECKED,
  /** Accept the fields that only internal systems of the service can set (interface, 2.1). Default: reject them. */
  allowInternal: UNCHECKED.unchecked,
};
const PUT = {
  ...WRITE,
  /** The asset is new: `imprint_id` and `title` are required. Default: true without an identifier. */
  create: z.boolean('must be true or false').optional(),
};
const WRITE_OPTIONS = callOptions(WRITE);
const PUT_OPTIONS = callOptions(PUT);

/** @rule 1-1, 1-4, 4.1-2..3, 4.1-8..10, 9-1 */
export type AssetOptions = CallOptions & OptionsOf<typeof WRITE>;
export type PutAssetOptions = CallOptions & OptionsOf<typeof PUT>;

/**
 * The asset that a write was answered with. Without its identifier it could not be found again, and another one than `vbid`
 * (null: the service assigns it) shows that the write was done elsewhere, or not at all.
 */
export function writtenAsset({ value, origin, status, hide }: ParsedAnswer, vbid: string | null): WrittenAsset {
  const asset = assetOf(value);
  const own = asset.vbid ?? '';
  if (own !== '' && (vbid === null || isIdentifiedBy(asset, vbid))) return { ...asset, vbid: own };
  const other = own === '' ? 'without a vbid' : `with ${hide(own, MAX_IDENTIFIER)} instead of ${vbid}`;
  const error = new CatchwordError('SERVICE_ERROR', `${origin} answered ${other}`, { status });
  throw checkFirst(error, { ...(vbid === null && { creates: 'vbid' }) });
}

export type Assets = ReturnType<typeof createAssets>;

/**
 * Create and update of assets: `PUT /v4/assets/:vbid` (interface, 4.1). Fields are validated before anything is sent.
 *
 * Each throws CatchwordError USAGE naming every invalid field; SERVICE_FORBIDDEN if the API key does not own the asset
 * (403); SERVICE_INVALID with the messages of the service (422); NOT_FOUND; SOURCE_*; INTERRUPTED.
 */
export function createAssets(caller: Caller) {
  async function put<O extends PutAssetOptions>(
    vbid: string | null,
    fields: FieldsFor<O, AssetFields>,
    options?: O,
  ): Promise<WrittenAsset> {
    const { create = vbid === null, signal, allowInternal, unchecked } = optionsOf(PUT_OPTIONS, options);
    const body = checkAsset(fields, { create, allowInternal, unchecked });
    const write: Operation<WrittenAsset> = {
      method: 'PUT',
      path: '/v4/assets',
      body,
      subject: 'new asset',
      format: 'json',
      token: false,
      // Each request without an identifier creates another asset, and each with a file ingests it again.
      repeatable: vbid !== null && body.url === undefined,
      fields: ASSET_FIELDS,
      whoMayCall: OWNERS_ONLY,
      ...((create || vbid === null) && { creates: 'vbid' }),
      read: (answer) => writtenAsset(answer, vbid),
    };
    const one = { path: '/v4/assets/:vbid', values: { vbid }, subject: `asset ${vbid}` };
    return await caller.call(vbid === null ? write : { ...write, ...one }, signal);
  }

  return {
    /** Creates or updates. Without `vbid` the service assigns one, which the caller should store. */
    put,
    /** Creates with an identifier that the service assigns. */
    create: async <O extends AssetOptions>(fields: FieldsFor<O, AssetFields>, options?: O): Promise<WrittenAsset> =>
      await put(null, fields as AssetFields, { ...optionsOf(WRITE_OPTIONS, options), create: true }),
    update: async <O extends AssetOptions>(
      vbid: string,
      fields: FieldsFor<O, AssetFields>,
      options?: O,
    ): Promise<WrittenAsset> =>
      await put(vbid, fields as AssetFields, { ...optionsOf(WRITE_OPTIONS, options), create: false }),
  };
}
