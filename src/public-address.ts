import ipaddr from 'ipaddr.js';

/** Whether packets to this address leave the own network: not loopback, private, link-local or otherwise special. */
export function isPublic(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  // IPv4 written as IPv6 in the way of 1998 (::a.b.c.d).
  const isOldForm = parsed instanceof ipaddr.IPv6 && parsed.match(ipaddr.parse('::'), 96);
  return !isOldForm && parsed.range() === 'unicast';
}
