import { isIP } from 'node:net';
import { isPublic } from '../../public-address.ts';
import { readJsonBody } from '../http/json-body.ts';
import { type Judged, judge } from '../http/validate.ts';
import { type AssetRequest, assetCreation, assetUpdate } from './fields.ts';

/** A name is judged when it is looked up for the call; what it shows by itself, at once. */
function refusesCallback(address: string): boolean {
  const host = new URL(address).hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  return isIP(host) !== 0 ? !isPublic(host) : host === 'localhost' || host.endsWith('.localhost');
}

export interface Reading {
  /** Whether the asset does not exist yet, so that `imprint_id` and `title` are needed. */
  readonly creates: boolean;
  readonly allowPrivateCallbacks: boolean;
}

/** Values in a body; generous: an asset has tens of prices. For safety. */
const MAX_VALUES = 10_000;

/** @returns the members that were sent, or what is wrong with them (422) */
export function readAssetRequest(body: Buffer, { creates, allowPrivateCallbacks }: Reading): Judged<AssetRequest> {
  const read = readJsonBody(body, MAX_VALUES);
  if ('wrong' in read) return read;
  const judged = judge<AssetRequest>(creates ? assetCreation : assetUpdate, read.json, '/');
  const wrong = 'wrong' in judged ? [...judged.wrong] : [];
  // Judged whatever else is wrong; not in the schema, which knows no options.
  const { callback_url: callback } = (read.json ?? {}) as { readonly callback_url?: unknown };
  const fits = !wrong.some((message) => message.startsWith('callback_url: '));
  if (!allowPrivateCallbacks && fits && typeof callback === 'string' && refusesCallback(callback)) {
    wrong.push('callback_url: an address in the own network is not called');
  }
  return wrong.length === 0 ? judged : { wrong };
}
