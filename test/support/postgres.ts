import { execFileSync } from 'node:child_process';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll } from 'vitest';
import { isInstalled, type ServerProcess, startServer } from './server.ts';

/** Debian installs the server's programs outside PATH. */
export function programs(): string {
  const root = '/usr/lib/postgresql';
  const [newest] = existsSync(root) ? readdirSync(root).sort((a, b) => Number(b) - Number(a)) : [];
  return newest === undefined ? '' : join(root, newest, 'bin/');
}

export const postgresAvailable = isInstalled(`${programs()}postgres`, 'PostgreSQL');

export interface PostgresServer extends ServerProcess {
  stop(): Promise<void>;
}

/** PostgreSQL refuses to run as root. */
function user(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const id = (flag: string): number => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

/** Starts a PostgreSQL in a new directory that trusts local connections: user postgres, database postgres. */
export async function startPostgres({ settings = [] as readonly string[] } = {}): Promise<PostgresServer> {
  const directory = mkdtempSync(join(tmpdir(), 'catchword-postgres-'));
  const owner = user();
  if (owner !== undefined) chownSync(directory, owner.uid, owner.gid);
  const data = join(directory, 'data');
  const initdb = ['-D', data, '-A', 'trust', '-U', 'postgres', '-E', 'UTF8', '--no-sync', '--locale=C'];
  // Its error output becomes part of the exception.
  execFileSync(`${programs()}initdb`, initdb, { stdio: ['ignore', 'ignore', 'pipe'], cwd: directory, ...owner });
  // Without a socket file, whose path may be too long in a temporary directory.
  const args = ['-D', data, '-h', '127.0.0.1', '-k', '', ...settings.flatMap((one) => ['-c', one])];
  const server = await startServer({
    command: `${programs()}postgres`,
    args: (port) => [...args, '-p', String(port)],
    ready: 'database system is ready to accept connections',
    ...(owner !== undefined && { user: owner }),
  });
  return {
    ...server,
    stop: async () => {
      await server.kill('SIGINT');
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** A server and a client for the tests of a `describe`; use them only in tests and hooks. */
export function usePostgres(): { readonly port: number; readonly client: pg.Client } {
  let server: PostgresServer;
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
