import { type LookupAddress, lookup } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';
import { unbracketed } from './loopback.ts';

/** Whether an IP address is on the public internet: not loopback, private, link-local or otherwise special. */
export function isPublic(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  // The deprecated way to write IPv4 as IPv6 (::a.b.c.d).
  const isOldForm = parsed instanceof ipaddr.IPv6 && parsed.match(ipaddr.parse('::'), 96);
  return !isOldForm && parsed.range() === 'unicast';
}

/** Whether a URL's host is itself a private IP address. Sockets do not look such a host up, so `publicLookup` misses it. */
export function isPrivateLiteral(hostname: string): boolean {
  const host = unbracketed(hostname);
  return isIP(host) !== 0 && !isPublic(host);
}

/**
 * Makes a `lookup` for sockets that rejects names with a private address. It judges the addresses that the socket connects
 * to, so a name cannot resolve to another one after the check (DNS rebinding).
 * @param errorFor makes the error for a rejected name
 */
export function publicLookup(errorFor: (hostname: string) => Error): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, found: LookupAddress[]) => {
      if (error !== null) return callback(error, '', 0);
      const [first] = found;
      const isAllowed = first !== undefined && found.every(({ address }) => isPublic(address));
      if (!isAllowed) return callback(errorFor(hostname), '', 0);
      if (options.all) return callback(null, found as unknown as string, 0);
      callback(null, first.address, first.family);
    });
  };
}
