import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isLoopback } from '../../base/loopback.ts';
import { isPrivateLiteral, publicLookup } from '../../base/public-address.ts';

const TIMEOUT_MS = 10_000;

/** Whether a URL shows by itself that its address is private. Names are checked when they are looked up. @rule 6-1 */
export function isPrivateUrl(url: string): boolean {
  const host = new URL(url).hostname.replace(/\.$/, '');
  return isPrivateLiteral(host) || isLoopback(host) || host.endsWith('.localhost');
}

const lookupPublic = publicLookup((hostname) => new Error(`${hostname} is a private address`));

/** POSTs JSON, without following redirects. @returns whether the reply has a 2xx status */
export function callBack(url: string, body: string, allowPrivate: boolean, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    if (!allowPrivate && isPrivateUrl(url)) return resolve(false);
    const send = url.toLowerCase().startsWith('https:') ? httpsRequest : httpRequest;
    const call = send(url, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) },
      signal,
      timeout: TIMEOUT_MS,
      agent: false,
      ...(!allowPrivate && { lookup: lookupPublic }),
    });
    call.on('timeout', () => call.destroy(new Error('no reply in time')));
    call.on('error', () => resolve(false));
    call.on('response', (response) => {
      const { statusCode = 500 } = response;
      response.resume();
      resolve(statusCode >= 200 && statusCode < 300);
    });
    call.end(body);
  });
}
