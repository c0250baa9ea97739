import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { withAbort } from '../../abort.ts';
import { isLoopback } from '../../loopback.ts';
import { isPublic } from '../../public-address.ts';

const LIMIT = { timeoutMs: 10_000, reason: () => new Error('no reply in time') };

/** The host of a URL, without brackets and without the dot at its end. */
function hostOf(url: string): string {
  return new URL(url).hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
}

/** Whether a URL shows by itself that its address is private. Names are looked up when they are called. */
export function isPrivateUrl(url: string): boolean {
  const host = hostOf(url);
  return isIP(host) === 0 ? isLoopback(host) || host.endsWith('.localhost') : !isPublic(host);
}

export interface Call {
  readonly url: string;
  readonly body: string;
  readonly allowPrivate: boolean;
  readonly signal: AbortSignal;
}

/** POSTs JSON, without following redirects. @returns whether the reply has a 2xx status */
export async function callBack({ url, body, allowPrivate, signal }: Call): Promise<boolean> {
  const headers = { 'Content-Type': 'application/json' };
  try {
    const addresses = allowPrivate ? [] : await lookup(hostOf(url), { all: true });
    if (addresses.some(({ address }) => !isPublic(address))) return false;
    return await withAbort(
      [signal],
      async (signal) => {
        const response = await fetch(url, { method: 'POST', headers, body, redirect: 'manual', signal });
        await response.body?.cancel();
        return response.ok;
      },
      LIMIT,
    );
  } catch {
    return false;
  }
}
