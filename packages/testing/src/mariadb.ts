import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Connection, type ConnectionConfig, createConnection } from 'mariadb';
import { afterAll, beforeAll } from 'vitest';
import type { Certificate } from './certificate.ts';
import { copyNewData } from './run-directory.ts';
import { isInstalled, type ServerProcess, startServer } from './server.ts';

/** Debian installs it outside of a user's PATH. */
const PROGRAM = '/usr/sbin/mariadbd';

export const mariadbAvailable = isInstalled(PROGRAM, 'MariaDB');

interface MariadbSetup {
  readonly settings?: readonly string[];
  /** For clients that ask for TLS. */
  readonly certificate?: Certificate;
  /** Of the user root; by default, root has none. */
  readonly password?: string;
}

/** Starts a MariaDB in a new directory: user root, database shop. Its socket is `socket` there. */
export async function startMariadb({ settings = [], certificate, password = '' }: MariadbSetup = {}) {
  const user = `--user=${process.getuid?.() === 0 ? 'root' : process.env.USER}`;
  const data = (directory: string): string => join(directory, 'data');
  // Own to each server, because one that starts removes all temporary tables there, another server's too.
  const temporary = (directory: string): string => `--tmpdir=${directory}`;
  return await startServer({
    command: PROGRAM,
    args: (port, directory) => [
      '--no-defaults',
      user,
      `--datadir=${data(directory)}`,
      temporary(directory),
      `--socket=${join(directory, 'socket')}`,
      `--init-file=${join(directory, 'init.sql')}`,
      '--bind-address=127.0.0.1',
      `--port=${port}`,
      '--skip-name-resolve',
      '--innodb-flush-log-at-trx-commit=0',
      ...(certificate === undefined ? [] : [`--ssl-cert=${certificate.cert}`, `--ssl-key=${certificate.key}`]),
      ...settings,
    ],
    ready: 'ready for connections',
    prepare: (directory) => {
      copyNewData('mariadb-install-db', directory, (template) => {
        const fixed = ['--no-defaults', '--auth-root-authentication-method=normal', '--skip-test-db', user];
        const places = [`--datadir=${data(template)}`, temporary(template)];
        execFileSync('/usr/bin/mariadb-install-db', [...fixed, ...places], { stdio: ['ignore', 'ignore', 'pipe'] });
      });
      const access = `GRANT ALL ON *.* TO root@'127.0.0.1' IDENTIFIED BY '${password}' WITH GRANT OPTION;`;
      writeFileSync(join(directory, 'init.sql'), `CREATE DATABASE IF NOT EXISTS shop;\n${access}\n`);
    },
  });
}

/** Logs in as root. @param options what differs from that, or is added */
export async function connectMariadb(port: number, options: ConnectionConfig = {}): Promise<Connection> {
  // The driver's own limit of a second is too short on a busy machine.
  const login = { host: '127.0.0.1', port, user: 'root', database: 'shop', connectTimeout: 60_000 };
  return await createConnection({ ...login, ...options });
}

/** A server and a client for the tests of a `describe`; use them only in tests and hooks. */
export function useMariadb(setup?: MariadbSetup): { readonly server: ServerProcess; readonly client: Connection } {
  const used = {} as { server: ServerProcess; client: Connection };
  beforeAll(async () => {
    used.server = await startMariadb(setup);
    used.client = await connectMariadb(used.server.port, {
      password: setup?.password ?? '',
      multipleStatements: true,
      autoJsonMap: false,
      bigIntAsNumber: true,
      dateStrings: true,
    });
  });
  afterAll(async () => {
    await used.client.end();
    await used.server.stop();
  });
  return used;
}
