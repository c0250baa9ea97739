import { SANDBOX_DEFAULTS } from '@catchword/sandbox/options';
import type { Sandbox } from '@catchword/sandbox/sandbox-server';
import { request } from 'undici';

export interface AssetBody {
  readonly vbid: string;
  readonly identifiers: Readonly<Record<string, readonly string[]>>;
  readonly variants: readonly {
    readonly sku: string;
    readonly duration: string;
    readonly channel_ids: readonly unknown[];
    readonly prices: readonly Readonly<Record<string, unknown>>[];
  }[];
  readonly [member: string]: unknown;
}

export interface AssetReply {
  readonly status: number;
  readonly body: AssetBody;
  readonly errors: readonly string[];
}

export async function send(
  sandbox: Sandbox,
  method: 'GET' | 'PUT' | 'POST',
  path: string,
  body?: unknown,
  key = SANDBOX_DEFAULTS.apiKey,
): Promise<AssetReply> {
  const response = await request(sandbox.url + path, {
    method,
    headers: { [SANDBOX_DEFAULTS.apiKeyHeader]: key, accept: 'application/json' },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const reply = (await response.body.json()) as AssetBody & { readonly errors?: readonly string[] };
  return { status: response.statusCode, body: reply, errors: reply.errors ?? [] };
}

/** Creates or updates an asset with a chosen identifier. */
export function put(sandbox: Sandbox, vbid: string, body: unknown, key?: string): Promise<AssetReply> {
  return send(sandbox, 'PUT', `/v4/assets/${vbid}`, body, key);
}

/** The fields that a creation requires. */
export const NEW = { imprint_id: 3, title: 'Tides' };
