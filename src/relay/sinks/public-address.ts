import { type LookupAddress, lookup } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { isPublic } from '../../public-address.ts';
import { SinkError } from '../sink.ts';
import { QUOTE } from '../sink-options.ts';

function refusal(host: string): SinkError {
  const message = `${host} is in the own network; allow it with #allow=private at the end of the address.`;
  return new SinkError('misconfigured', `${message} ${QUOTE}`);
}

/** An address that is written as a number is never looked up, so it is judged here. */
export function refusePrivateLiteral(hostname: string): void {
  const host = hostname.replace(/^\[|\]$/g, '');
  if (isIP(host) !== 0 && !isPublic(host)) throw refusal(host);
}

/**
 * Looks names up for a connection that is being made, so that what is judged is what is connected to: a name that has
 * another address the next time gets nowhere.
 */
export const lookupPublic: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, found: LookupAddress[]) => {
    if (error !== null) return callback(error, '', 0);
    const open = found.filter(({ address }) => isPublic(address));
    const [first] = open;
    if (first === undefined || open.length < found.length) return callback(refusal(hostname), '', 0);
    if (options.all) return callback(null, open as unknown as string, 0);
    callback(null, first.address, first.family);
  });
};
