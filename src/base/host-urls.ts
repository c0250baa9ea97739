/** Scheme and credentials, hosts, the rest. A comma before the last `@` belongs to a password. */
const HOSTS = /^((?:rediss?\+sentinel|nats|tls):\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/is;

/** Options of an address with sentinels: how to log in to the sentinels. */
export const SENTINEL_OPTIONS: readonly string[] = ['sentinel_user', 'sentinel_password'];

export function isBehindSentinels({ protocol }: URL): boolean {
  return protocol.endsWith('+sentinel:');
}

/** Parses an address: one with several sentinels or NATS servers becomes a URL for each, an invalid one none. */
export function hostUrls(address: string): URL[] {
  const [, before = '', hosts = '', after = ''] = HOSTS.exec(address) ?? ['', address];
  const urls = hosts.split(',').map((host) => `${before}${host}${after}`);
  return urls.every((url) => URL.canParse(url)) ? urls.map((url) => new URL(url)) : [];
}
