/** Scheme and credentials, hosts, the rest. A comma before the last `@` belongs to a password. */
const SENTINELS = /^(rediss?\+sentinel:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/is;

/** Options of an address with sentinels: how to log in to the sentinels. */
export const SENTINEL_OPTIONS: readonly string[] = ['sentinel_user', 'sentinel_password'];

/**
 * Parses the address of a Redis. An address with several sentinels becomes several URLs, which differ in the host.
 * @returns empty if the address is not valid
 */
export function redisUrls(address: string): URL[] {
  const [, before = '', hosts = '', after = ''] = SENTINELS.exec(address) ?? ['', address];
  const urls = hosts.split(',').map((host) => `${before}${host}${after}`);
  return urls.every((url) => URL.canParse(url)) ? urls.map((url) => new URL(url)) : [];
}
