/** Scheme and credentials, hosts, the rest. A comma before the last `@` belongs to a password. */
const HOSTS = /^([a-z+]+:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/is;

/** Options of an address with sentinels: how to log in to the sentinels. */
export const SENTINEL_OPTIONS: readonly string[] = ['sentinel_user', 'sentinel_password'];

export function isBehindSentinels({ protocol }: URL): boolean {
  return protocol.endsWith('+sentinel:');
}

/**
 * Parses an address: one with several hosts becomes a URL for each, an invalid one none.
 * @param hasSeveral whether it may name several hosts; by default only sentinels are several
 */
export function hostUrls(address: string, hasSeveral = /^rediss?\+sentinel:/i.test(address)): URL[] {
  const [, before = '', hosts = '', after = ''] = (hasSeveral && HOSTS.exec(address)) || ['', address];
  const urls = hosts.split(',').map((host) => `${before}${host}${after}`);
  return urls.every((url) => URL.canParse(url)) ? urls.map((url) => new URL(url)) : [];
}

/** The hosts with their ports, for people. @param port the one of a host without a port */
export function hostsOf(urls: readonly URL[], port: string): string {
  return urls.map((url) => `${url.hostname}:${url.port || port}`).join(',');
}
