import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isPrivateLiteral, publicLookup } from '../../public-address.ts';

const TIMEOUT_MS = 10_000;

const lookupPublic = publicLookup((hostname) => new Error(`${hostname} is a private address`));

export interface Call {
  readonly url: string;
  readonly body: string;
  readonly allowPrivate: boolean;
  readonly signal: AbortSignal;
}

/** POSTs JSON. @returns whether it was answered with 2xx; redirects are not followed, and what cannot be called is false */
export function callBack({ url, body, allowPrivate, signal }: Call): Promise<boolean> {
  return new Promise((resolve) => {
    // An address may look right and still be refused at the call, as one whose user is not encoded well.
    try {
      const { hostname, protocol } = new URL(url);
      if (!allowPrivate && isPrivateLiteral(hostname)) return resolve(false);
      const send = protocol === 'https:' ? httpsRequest : httpRequest;
      const call = send(url, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) },
        signal,
        timeout: TIMEOUT_MS,
        agent: false,
        ...(!allowPrivate && { lookup: lookupPublic }),
      });
      call.on('timeout', () => call.destroy(new Error('no answer in time')));
      call.on('error', () => resolve(false));
      call.on('response', (response) => {
        const { statusCode = 500 } = response;
        response.resume();
        resolve(statusCode >= 200 && statusCode < 300);
      });
      call.end(body);
    } catch {
      resolve(false);
    }
  });
}
