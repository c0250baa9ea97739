import { isIP } from 'node:net';
import { Redis, type RedisOptions } from 'ioredis';
import { distrustOf } from './certificate.ts';
import { messageOf, systemCodeOf } from './errors.ts';
import { isBehindSentinels } from './host-urls.ts';
import { unbracketed } from './loopback.ts';

const SENTINEL_TIMEOUT_MS = 5_000;

export type ClientOptions = Omit<RedisOptions, 'replyMapping'>;

/** Where a server is, as ioredis takes it. */
interface Endpoint extends Pick<ClientOptions, 'tls'> {
  readonly host: string;
  readonly port: number;
}

/** What an address of the form of REDIS_URL means. */
export interface RedisPlace {
  /** `host:port`, or the name of the primary and its sentinels. The address may contain a password; this does not. */
  readonly label: string;
  readonly sentinels: {
    /** The name by which they know the primary. */
    readonly name: string;
    readonly endpoints: readonly Endpoint[];
    /** They have users of their own, and need none by default. The password of Redis is not for them. */
    readonly login: Pick<ClientOptions, 'username' | 'password'>;
  } | null;
  /** Makes a client of the server; with sentinels, of the primary that they name whenever it connects. */
  readonly open: (options: ClientOptions) => Redis;
}

export function labelOf({ host, port }: Endpoint): string {
  return `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
}

function endpointOf({ protocol, hostname, port }: URL, defaultPort: number): Endpoint {
  const host = unbracketed(hostname) || '127.0.0.1';
  // Node.js does not send the host's name by itself, which a server with several certificates needs.
  const tls = protocol.startsWith('rediss') && { tls: isIP(host) === 0 ? { servername: host } : {} };
  return { host, port: Number(port || defaultPort), ...tls };
}

/** @param urls of all sentinels */
function placeBehind(urls: readonly URL[], url: URL): RedisPlace {
  const [, name = '', db = ''] = url.pathname.split('/');
  // In a query, + would be a space.
  const query = new URLSearchParams(url.search.replaceAll('+', '%2B'));
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
    open: (options) =>
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

/** @param urls of an address of the form of REDIS_URL, which the setting's form has checked; one for each host */
export function redisPlace(urls: readonly URL[]): RedisPlace {
  const [url] = urls;
  if (url === undefined) throw new Error('the address of Redis is not valid');
  if (isBehindSentinels(url)) return placeBehind(urls, url);
  const { tls, ...endpoint } = endpointOf(url, 6379);
  return {
    label: labelOf(endpoint),
    sentinels: null,
    open: (options) => new Redis(url.href, { ...options, ...(tls && { tls }) }),
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
