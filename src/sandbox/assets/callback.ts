import { lookup } from 'node:dns';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { isPublic } from '../../public-address.ts';

const TIMEOUT_MS = 10_000;

/** Looks names up for a call that is being made, so that what is judged is what is called. */
const lookupPublic: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, found) => {
    if (error !== null) return callback(error, '', 0);
    const [first] = found;
    if (first === undefined || found.some(({ address }) => !isPublic(address))) {
      return callback(new Error('an address in the own network is not called'), '', 0);
    }
    if (options.all) return callback(null, found as unknown as string, 0);
    callback(null, first.address, first.family);
  });
};

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
      // An address that is written as a number is never looked up.
      const host = hostname.replace(/^\[|\]$/g, '');
      if (!allowPrivate && isIP(host) !== 0 && !isPublic(host)) return resolve(false);
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
