import { type LookupAddress, lookup } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';
import { unbracketed } from './loopback.ts';

/** What ipaddr.js calls the ranges of IANA's registries of special addresses that the internet reaches. */
const REACHED = ['unicast', 'as112', 'as112v6', 'amt', 'orchid2', 'droneRemoteIdProtocolEntityTags'];

function isReached(address: ipaddr.IPv4 | ipaddr.IPv6): boolean {
  // IANA has assigned no other IPv6 addresses to hosts of the internet.
  const isAssigned = address instanceof ipaddr.IPv4 || address.match(ipaddr.parse('2000::'), 3);
  return isAssigned && REACHED.includes(address.range());
}

/** The IPv4 addresses to which translators and tunnels send what is for an IPv6 address, which has them in it. */
function embeddedIn(address: ipaddr.IPv6): ipaddr.IPv4[] {
  const bytes = address.toByteArray();
  const at = (start: number, mask = 0) => new ipaddr.IPv4(bytes.slice(start, start + 4).map((byte) => byte ^ mask));
  // Not 64:ff9b:1::/48: only its translator knows where the IPv4 address is.
  if (address.match(ipaddr.parse('64:ff9b::'), 96)) return [at(12)];
  if (address.range() === '6to4') return [at(2)];
  // The server, and the inverted address of the client.
  if (address.range() === 'teredo') return [at(4), at(12, 255)];
  const isIsatap = isReached(address) && /^0[02]005efe/.test(Buffer.from(bytes).toString('hex', 8));
  return isIsatap ? [at(12)] : [];
}

/** Whether an IP address is on the public internet: not loopback, private, link-local or otherwise special. */
export function isPublic(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  // An IPv4 address, also if it is written as IPv6 (::ffff:a.b.c.d).
  const parsed = ipaddr.process(address);
  const embedded = parsed instanceof ipaddr.IPv6 ? embeddedIn(parsed) : [];
  return embedded.length > 0 ? embedded.every(isReached) : isReached(parsed);
}

/** Whether a URL's host is itself a private IP address. Sockets do not look such a host up, so `publicLookup` misses it. */
export function isPrivateLiteral(hostname: string): boolean {
  const host = unbracketed(hostname);
  return isIP(host) !== 0 && !isPublic(host);
}

/**
 * Makes a `lookup` for sockets that rejects names with a private address. It judges the addresses that the socket connects
 * to, so a name cannot resolve to another one after the check (DNS rebinding).
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
