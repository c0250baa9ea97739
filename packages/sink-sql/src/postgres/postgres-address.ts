import { isIPv6 } from 'node:net';
import { unbracketed } from '@catchword/base/loopback';
import { decoded } from '@catchword/base/percent-decode';
import { readTextInTime } from '@catchword/base/text-file';
import { wholeNumber } from '@catchword/base/whole-number';
import { wholeOption } from '@catchword/sink-kit/sink-options';
import type pg from 'pg';
import * as z from 'zod';

/* An address of PostgreSQL as libpq reads it. The driver's own parser writes warnings to stderr. */

/** Stands for a host that is in the query alone: behind a password, the URL class demands one. */
const NO_HOST = '_';
const HOSTS = /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#@]*,[^/?#@]*)?(?=[/?#]|$)/;

/** Replaces what the URL class cannot parse: a missing host, and a list of hosts, of which a comma stays. */
export function parsable(address: string): string {
  return address.replace(HOSTS, (_, before: string, hosts?: string) => before + (hosts === undefined ? NO_HOST : ','));
}

/** Where an address leads to: an option in the query takes precedence over what is before it. */
function placeOf({ hostname, port, pathname, searchParams }: URL) {
  const { table = 'products', ...query } = Object.fromEntries(searchParams);
  const host = query.host || (hostname === NO_HOST ? '' : unbracketed(decoded(hostname)));
  const database = query.dbname || decoded(pathname.slice(1));
  return { host, port: query.port || port || '5432', database, table };
}

/** The server, database and table, for people; also what identifies the store. */
export function postgresLabel(url: URL): string {
  const { host, port, database, table } = placeOf(url);
  return `${isIPv6(host) ? `[${host}]` : host}:${port}/${encodeURIComponent(database)} ${table}`;
}

/** Finds the first fault of the host and port. @returns the message and the hint */
export function placeProblem(url: URL): [string, string] | null {
  const { host, port } = placeOf(url);
  if (host === '') return ['the host is missing', 'Use postgres://HOST/NAME, or postgres:///NAME?host=/DIRECTORY.'];
  if (/,/.test(host + port)) return ['there are several hosts', 'Use one: the primary, or a name that leads to it.'];
  return wholeNumber(port, 1, 65_535) === null ? ['the port is not valid', 'Use a number from 1 to 65535.'] : null;
}

function oneOf<const Word extends string>(...words: readonly Word[]) {
  return z.enum(words, words.join(', ')).optional();
}
function each<const Name extends string, Type>(type: Type, ...names: readonly Name[]): Record<Name, Type> {
  return Object.fromEntries(names.map((name) => [name, type])) as Record<Name, Type>;
}
const MODES = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full', 'no-verify'] as const;
/** Options that would change what a sink does. @param instead follows "Use" */
const unfit = (instead: string) => z.never(instead).optional();

/** Options of libpq, and of other drivers, that catchword follows or rejects. */
export const FOLLOWED = {
  ...each(oneOf(...MODES, 'true', 'false', '1', '0'), 'sslmode', 'ssl'),
  ...each(z.string().optional(), 'sslrootcert', 'sslcert', 'sslkey', 'sslpassword', 'host', 'port', 'dbname'),
  ...each(z.string().optional(), 'user', 'password', 'application_name', 'fallback_application_name', 'options'),
  ...each(wholeOption(0, 1e9).optional(), 'statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout'),
  sslnegotiation: oneOf('postgres', 'direct'),
  uselibpqcompat: oneOf('true', 'false'),
  channel_binding: oneOf('disable', 'prefer', 'require'),
  gssencmode: oneOf('disable', 'prefer'),
  target_session_attrs: oneOf('any', 'read-write', 'primary', 'prefer-standby'),
  hostaddr: unfit('host=ADDRESS'),
  ...each(unfit('table=SCHEMA.NAME'), 'schema', 'currentSchema', 'search_path'),
  ...each(unfit('an address without it'), 'service', 'passfile', 'requirepeer', 'require_auth', 'replication'),
  ...each(unfit('an address without it'), 'sslcrl', 'ssl_min_protocol_version', 'ssl_max_protocol_version'),
};
type Followed = z.output<z.ZodObject<typeof FOLLOWED>>;

/** Options that change nothing here: of libpq, and of poolers and programs that open several connections. */
export const WITHOUT_EFFECT = [
  'connect_timeout client_encoding keepalives keepalives_idle keepalives_interval keepalives_count tcp_user_timeout',
  'load_balance_hosts sslcompression sslsni sslcertmode krbsrvname gsslib gssdelegation pgbouncer connection_limit supa',
  'pool_timeout socket_timeout statement_cache_size sslaccept prepareThreshold prepared_statements pool_size workaround',
].flatMap((names) => names.split(' '));

/**
 * Reads how to encrypt; undefined if the address does not say it. libpq demands less of `require`, `prefer` and `allow`.
 * @throws CatchwordError CONFIG_INVALID if a file cannot be read
 */
async function tlsOf(asked: Followed): Promise<pg.ClientConfig['ssl']> {
  const { sslrootcert, sslcert, sslkey } = asked;
  const isMeant = sslrootcert || sslcert || asked.sslnegotiation === 'direct' || asked.channel_binding === 'require';
  const mode = asked.sslmode ?? asked.ssl ?? (isMeant ? 'verify-full' : undefined);
  if (mode === undefined) return undefined;
  if (/^(disable|false|0)$/.test(mode)) return false;
  const read = async (name: string, path?: string) =>
    path ? await readTextInTime(`the file of ${name}`, path) : undefined;
  // libpq's word for the authorities of the system.
  const ca = sslrootcert === 'system' ? undefined : await read('sslrootcert', sslrootcert);
  const isLoose = asked.uselibpqcompat === 'true' && !mode.startsWith('verify');
  return {
    ca,
    cert: await read('sslcert', sslcert),
    key: await read('sslkey', sslkey),
    passphrase: asked.sslpassword,
    rejectUnauthorized: mode !== 'no-verify' && !(isLoose && ca === undefined),
    // An authority of one's own signs for no other servers, a public one for anybody's.
    ...(ca !== undefined && (isLoose || mode === 'verify-ca') && { checkServerIdentity: () => undefined }),
  };
}

/** Makes the driver's settings for an address with these options. @throws CatchwordError CONFIG_INVALID */
export async function driverConfig(url: URL, asked: Followed): Promise<pg.ClientConfig> {
  const { host, port, database } = placeOf(url);
  return {
    ...asked,
    host,
    port: Number(port),
    database,
    user: asked.user || decoded(url.username),
    password: asked.password || decoded(url.password),
    // A socket of this machine has no TLS.
    ssl: host.startsWith('/') ? false : await tlsOf(asked),
    enableChannelBinding: asked.channel_binding === 'require',
  };
}
