import { isIP } from 'node:net';
import { Redis, type RedisOptions } from 'ioredis';
import { distrustOf } from './certificate.ts';
import { messageOf, systemCodeOf } from './errors.ts';
import { isBehindSentinels } from './host-urls.ts';
import { unbracketed } from './loopback.ts';
import { decoded } from './percent-decode.ts';

const SENTINEL_TIMEOUT_MS = 5_000;

export type ClientOptions = Omit<RedisOptions, 'replyMapping'>;

export function labelOf({ host, port }: ReturnType<typeof endpointOf>): string {
  return `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
}

/** Where a server is, as ioredis takes it. */
function endpointOf({ protocol, hostname, port }: URL, defaultPort: number) {
  const host = unbracketed(hostname) || '127.0.0.1';
  // Node.js does not send the host's name by itself, which a server with several certificates needs.
  const tls = protocol.startsWith('rediss') && { tls: isIP(host) === 0 ? { servername: host } : {} };
  return { host, port: Number(port || defaultPort), ...tls };
}

export type RedisPlace = ReturnType<typeof redisPlace>;

/**
 * Explains an address of the form of REDIS_URL, which the setting's form has checked: a URL for each host.
 * @returns `label`, without a password: `host:port`, or the name of the primary and its sentinels; `login`, the users and
 *   passwords as options of a client; `open`, which makes a client of the server, or of the primary that the sentinels
 *   name whenever it connects
 */
export function redisPlace(urls: readonly URL[]) {
  const [url] = urls;
  if (url === undefined) throw new Error('the address of Redis is not valid');
  const own = { username: decoded(url.username) || undefined, password: decoded(url.password) || undefined };
  if (!isBehindSentinels(url)) {
    const { tls, ...endpoint } = endpointOf(url, 6379);
    const open = (options: ClientOptions): Redis => new Redis(url.href, { ...options, ...(tls && { tls }) });
    return { label: labelOf(endpoint), sentinels: null, login: own, open };
  }
  const [, name = '', db = ''] = url.pathname.split('/');
  // In a query, + would be a space.
  const query = new URLSearchParams(url.search.replaceAll('+', '%2B'));
  // They have users of their own, and need none by default. The password of Redis is not for them.
  const username = query.get('sentinel_user') ?? undefined;
  const password = query.get('sentinel_password') ?? undefined;
  const endpoints = urls.map((each) => endpointOf(each, 26_379));
  const server = new URL(url);
  server.protocol = url.protocol.replace('+sentinel', '');
  server.pathname = db;
  server.search = '';
  return {
    label: `${name} (sentinels ${endpoints.map(labelOf).join(', ')})`,
    sentinels: { name, endpoints, login: { username, password } },
    login: { ...own, sentinelUsername: username, sentinelPassword: password },
    open: (options: ClientOptions): Redis =>
      new Redis(server.href, {
        ...options,
        name,
        sentinels: endpoints.map(({ host, port }) => ({ host, port })),
        sentinelUsername: username,
        sentinelPassword: password,
        // Without a limit, a frozen sentinel would never be given up.
        sentinelCommandTimeout: SENTINEL_TIMEOUT_MS,
        ...(server.protocol === 'rediss:' && { tls: {}, sentinelTLS: {}, enableTLSForSentinelMode: true }),
      }),
  };
}

/**
 * The reason of an error. A failed connection to a name with several addresses has a code but an empty message. Redis
 * quotes the arguments of a command that it does not know: of AUTH, the password.
 */
export function reasonOf(error: unknown): string {
  const said = messageOf(error).replace(/, with args beginning with:.*/s, '') || systemCodeOf(error) || 'no response';
  return distrustOf(error)?.problem ?? said;
}
