import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { isInstalled } from './server.ts';

const execute = promisify(execFile);

/** Debian's Python, because other users may not be able to run a version manager's shim. */
const PYTHON = '/usr/bin/python3';

export const sqliteToolsAvailable = isInstalled('sqlite3', 'sqlite3') && isInstalled(PYTHON, 'python3');

const READ =
  'import sqlite3, sys\nfor row in sqlite3.connect(sys.argv[1], uri=True).execute(sys.argv[2]): print(*row, sep="|")';

/** The user id of an unprivileged user. */
export const UNPRIVILEGED = 65_534;

interface As {
  readonly uid?: number;
  readonly gid?: number;
}

/** Runs a query with Debian's `sqlite3`. @returns one line for each row, with `|` between columns */
export async function sqlite3(db: string, sql: string, as: As = {}): Promise<string[]> {
  const { stdout } = await execute('sqlite3', [db, sql], { ...as, cwd: '/' });
  return stdout.split('\n').slice(0, -1);
}

/** As `sqlite3`, with Python's module. */
export async function python(db: string, sql: string, as: As = {}): Promise<string[]> {
  const { stdout } = await execute(PYTHON, ['-I', '-c', READ, db, sql], { ...as, cwd: '/' });
  return stdout.split('\n').slice(0, -1);
}
