import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, copyFileSync, existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll } from 'vitest';
import type { Certificate } from './certificate.ts';
import { copyNewData } from './run-directory.ts';
import { isInstalled, type ServerProcess, startServer } from './server.ts';

/** Debian installs the server's programs outside PATH. */
export function programs(): string {
  const root = '/usr/lib/postgresql';
  const [newest] = existsSync(root) ? readdirSync(root).sort((a, b) => Number(b) - Number(a)) : [];
  return newest === undefined ? '' : join(root, newest, 'bin/');
}

export const postgresAvailable = isInstalled(`${programs()}postgres`, 'PostgreSQL');

/** PostgreSQL and pgbouncer refuse to run as root. */
export function postgresUser(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const id = (flag: string): number => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

interface PostgresSetup {
  readonly settings?: readonly string[];
  /** For clients that ask for TLS. */
  readonly certificate?: Certificate;
  /** A directory for its socket. */
  readonly sockets?: string;
}

/** Starts a PostgreSQL in a new directory that trusts local connections: user postgres, database postgres. */
export async function startPostgres({ settings = [], certificate, sockets = '' }: PostgresSetup = {}) {
  const owner = postgresUser();
  const tls = certificate === undefined ? [] : ['ssl=on'];
  const options = [...settings, ...tls].flatMap((one) => ['-c', one]);
  return await startServer({
    command: `${programs()}postgres`,
    // By default without a socket file, whose path may be too long in a temporary directory.
    args: (port, directory) => ['-D', directory, '-h', '127.0.0.1', '-k', sockets, ...options, '-p', String(port)],
    ready: 'database system is ready to accept connections',
    ...(owner !== undefined && { user: owner }),
    prepare: (directory) => {
      copyNewData('initdb', directory, (template) => {
        if (owner !== undefined) chownSync(template, owner.uid, owner.gid);
        const initdb = ['-D', template, '-A', 'trust', '-U', 'postgres', '-E', 'UTF8', '--no-sync', '--locale=C'];
        // Its error output becomes part of the exception.
        execFileSync(`${programs()}initdb`, initdb, { stdio: ['ignore', 'ignore', 'pipe'], cwd: template, ...owner });
      });
      if (owner !== undefined) execFileSync('chown', ['-R', `${owner.uid}:${owner.gid}`, directory]);
      chmodSync(directory, 0o700);
      if (certificate === undefined) return;
      for (const [name, file] of Object.entries({ 'server.crt': certificate.cert, 'server.key': certificate.key })) {
        const copy = join(directory, name);
        copyFileSync(file, copy);
        chmodSync(copy, 0o600);
        if (owner !== undefined) chownSync(copy, owner.uid, owner.gid);
      }
    },
    stopSignal: 'SIGINT',
  });
}

/** A server and a client for the tests of a `describe`; use them only in tests and hooks. */
export function usePostgres(): { readonly port: number; readonly client: pg.Client } {
  let server: ServerProcess;
  let client: pg.Client;
  beforeAll(async () => {
    server = await startPostgres({ settings: ['fsync=off'] });
    client = new pg.Client({ connectionString: `postgres://postgres@127.0.0.1:${server.port}/postgres` });
    await client.connect();
  });
  afterAll(async () => {
    await client.end();
    await server.stop();
  });
  return {
    get port() {
      return server.port;
    },
    get client() {
      return client;
    },
  };
}
