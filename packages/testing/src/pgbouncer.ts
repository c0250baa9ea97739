import { chownSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { postgresUser } from './postgres.ts';
import { isInstalled, type ServerProcess, startServer } from './server.ts';

export const pgbouncerAvailable = isInstalled('pgbouncer', 'pgbouncer');

/**
 * Starts a pooler in front of a PostgreSQL, whose clients share one connection, a transaction at a time.
 * @param settings lines of its file, such as `query_timeout = 1`
 */
export async function startPgbouncer(port: number, settings: readonly string[] = []): Promise<ServerProcess> {
  const owner = postgresUser();
  return await startServer({
    command: 'pgbouncer',
    args: (own, directory) => {
      const users = join(directory, 'users.txt');
      const file = join(directory, 'pgbouncer.ini');
      writeFileSync(users, '"postgres" ""\n');
      writeFileSync(
        file,
        `[databases]\n* = host=127.0.0.1 port=${port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = ${own}\n` +
          `unix_socket_dir =\nauth_type = trust\nauth_file = ${users}\npool_mode = transaction\ndefault_pool_size = 1\n${settings.join('\n')}\n`,
      );
      if (owner !== undefined) for (const path of [directory, users, file]) chownSync(path, owner.uid, owner.gid);
      return [file];
    },
    ready: 'process up',
    ...(owner !== undefined && { user: owner }),
  });
}
