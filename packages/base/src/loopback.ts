import { isIPv4 } from 'node:net';

/** The host of a URL as sockets take it: an IPv6 address without its brackets. */
export function unbracketed(host: string): string {
  return host.replace(/^\[(.*)\]$/, '$1');
}

/** Whether a host name or address belongs to this machine. IPv6 addresses may be in brackets. */
export function isLoopback(host: string): boolean {
  const bare = unbracketed(host.toLowerCase());
  return bare === 'localhost' || bare === '::1' || (isIPv4(bare) && bare.startsWith('127.'));
}

/** Removes the port from a `Host` header. */
export function hostOf(header: string | undefined): string {
  return (header ?? '').replace(/:\d*$/, '');
}
