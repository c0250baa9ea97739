import { isIP } from 'node:net';
import { unbracketed } from '@catchword/base/loopback';
import { decoded } from '@catchword/base/percent-decode';
import { readTextInTime } from '@catchword/base/text-file';
import type { ConnectionConfig } from 'mariadb';
import * as z from 'zod';

/* An address of MySQL or MariaDB: mysql://USER:PASSWORD@HOST:PORT/DATABASE?table=NAME. */

const MODES = ['DISABLED', 'REQUIRED', 'VERIFY_CA', 'VERIFY_IDENTITY'] as const;

/** Options of the clients of MySQL and MariaDB that catchword follows. */
// biome-ignore format: an option is a line.
export const FOLLOWED = {
  'ssl-mode': z.enum(MODES, MODES.join(', ')).optional().meta({
    'ssl-mode=REQUIRED': "TLS, and the [certificate must be trusted](../security.md#tls). MySQL's own clients demand less",
    'ssl-mode=VERIFY_IDENTITY': 'the same',
    'ssl-mode=VERIFY_CA': 'the same; but with `ssl-ca=FILE` the certificate may name another host',
    'ssl-mode=DISABLED': 'no TLS, as without these options',
  }),
  'ssl-ca': z.string().optional().meta({ 'ssl-ca=FILE': 'the authority' }),
  'ssl-cert': z.string().optional().meta({ 'ssl-cert=FILE': 'a certificate of the client' }),
  'ssl-key': z.string().optional().meta({ 'ssl-key=FILE': 'the key of that certificate' }),
  socket: z.string().optional().meta({ 'socket=FILE': 'a socket of this machine, without TLS: `mysql://USER@localhost/shop?socket=/run/mysqld/mysqld.sock`' }),
};
type Followed = z.output<z.ZodObject<typeof FOLLOWED>>;

/** The server or its socket, the database and the table, for people; also what identifies the store. */
export function mysqlLabel({ hostname, port, pathname, searchParams }: URL): string {
  const server = searchParams.get('socket') ?? `${hostname}:${port || '3306'}`;
  return `${server}${pathname} ${searchParams.get('table') ?? 'products'}`;
}

/** Finds the first fault of an address. @returns the message and the hint */
export function mysqlProblem({ hostname, username, pathname }: URL): [string, string] | null {
  const hint = 'Use mysql://USER:PASSWORD@HOST/DATABASE, with socket=FILE for a socket of this machine.';
  if (hostname === '') return ['the host is missing', hint];
  if (username === '') return ['the user is missing', hint];
  return /^\/[^/]+$/.test(pathname) ? null : ['the database is missing', hint];
}

/**
 * Reads how to encrypt; false: not at all. MySQL's clients verify less with REQUIRED.
 * @throws CatchwordError CONFIG_INVALID if a file cannot be read
 */
async function tlsOf(host: string, asked: Followed): Promise<NonNullable<ConnectionConfig['ssl']>> {
  const { 'ssl-ca': ca, 'ssl-cert': cert, 'ssl-key': key } = asked;
  const mode = asked['ssl-mode'] ?? (ca || cert ? 'VERIFY_IDENTITY' : 'DISABLED');
  if (mode === 'DISABLED') return false;
  const read = (name: string, path: string) => readTextInTime(`the file of ${name}`, path);
  const options = {
    ...(ca && { ca: await read('ssl-ca', ca) }),
    ...(cert && { cert: await read('ssl-cert', cert) }),
    ...(key && { key: await read('ssl-key', key) }),
    // The certificate is compared with it. The name of a server that is asked for must not be an address.
    host,
    ...(isIP(host) === 0 && { servername: host }),
    // An authority of one's own signs for no other servers, a public one for anybody's.
    ...(ca && mode === 'VERIFY_CA' && { checkServerIdentity: () => undefined }),
  };
  return options;
}

/** Makes the driver's settings for an address with these options. @throws CatchwordError CONFIG_INVALID */
export async function driverConfig(url: URL, asked: Followed): Promise<ConnectionConfig> {
  const host = unbracketed(decoded(url.hostname));
  return {
    host,
    port: Number(url.port || '3306'),
    user: decoded(url.username),
    password: decoded(url.password),
    database: decoded(url.pathname.slice(1)),
    // A socket of this machine has no TLS.
    ...(asked.socket ? { socketPath: asked.socket } : { ssl: await tlsOf(host, asked) }),
  };
}
