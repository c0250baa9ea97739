import { isIPv4 } from 'node:net';

/** Whether a host name or address belongs to this machine. IPv6 addresses may be in brackets. */
export function isLoopback(host: string): boolean {
  const bare = host.toLowerCase().replace(/^\[(.*)\]$/, '$1');
  return bare === 'localhost' || bare === '::1' || (isIPv4(bare) && bare.startsWith('127.'));
}

/** Removes the port from a `Host` header. */
export function hostOf(header: string | undefined): string {
  return (header ?? '').replace(/:\d*$/, '');
}
