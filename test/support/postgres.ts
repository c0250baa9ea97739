import { execFileSync } from 'node:child_process';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { freePort, isInstalled, type ServerProcess, startServer } from './server.ts';

/** Debian keeps the server's programs outside the path. */
export function programs(): string {
  const root = '/usr/lib/postgresql';
  const [newest] = existsSync(root) ? readdirSync(root).sort((a, b) => Number(b) - Number(a)) : [];
  return newest === undefined ? '' : join(root, newest, 'bin/');
}

export const postgresAvailable = isInstalled(`${programs()}postgres`, 'PostgreSQL');

export interface PostgresServer extends ServerProcess {
  readonly port: number;
  stop(): Promise<void>;
}

/** PostgreSQL refuses to run as root. */
function user(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const id = (flag: string): number => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

/** Its port answers before it does. */
async function untilItServes(port: number): Promise<void> {
  for (;;) {
    const client = new pg.Client({ connectionString: `postgres://postgres@127.0.0.1:${port}/postgres` });
    try {
      await client.connect();
      await client.end();
      return;
    } catch (error) {
      if (!String(error).includes('starting up')) throw error;
      await delay(20);
    }
  }
}

/** A PostgreSQL of its own, in a new directory, that trusts everybody on this machine: user postgres, database postgres. */
export async function startPostgres({ settings = [] as readonly string[] } = {}): Promise<PostgresServer> {
  const directory = mkdtempSync(join(tmpdir(), 'catchword-postgres-'));
  const owner = user();
  if (owner !== undefined) chownSync(directory, owner.uid, owner.gid);
  const data = join(directory, 'data');
  const initdb = ['-D', data, '-A', 'trust', '-U', 'postgres', '-E', 'UTF8', '--no-sync', '--locale=C'];
  execFileSync(`${programs()}initdb`, initdb, { stdio: 'ignore', cwd: directory, ...owner });
  const port = await freePort();
  const args = ['-D', data, '-h', '127.0.0.1', '-p', String(port), '-k', directory];
  const server = await startServer({
    ...{ command: `${programs()}postgres`, args: [...args, ...settings.flatMap((one) => ['-c', one])], port },
    ...(owner !== undefined && { user: owner }),
  });
  await untilItServes(port);
  return {
    ...server,
    port,
    stop: async () => {
      await server.kill('SIGINT');
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
