import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { isInstalled } from './server.ts';

const execute = promisify(execFile);

/** Debian's: a shim of a version manager may not be there for other users. */
const PYTHON = '/usr/bin/python3';

export const sqliteToolsAvailable = isInstalled('sqlite3', 'sqlite3') && isInstalled(PYTHON, 'python3');

const READ =
  'import sqlite3, sys\nfor row in sqlite3.connect(sys.argv[1], uri=True).execute(sys.argv[2]): print(*row, sep="|")';

/** A user of this machine who owns nothing. */
export const NOBODY = 65_534;

interface As {
  readonly uid?: number;
  readonly gid?: number;
}

/** The rows that Debian's `sqlite3` prints, a line each, with `|` between columns. */
export async function sqlite3(db: string, sql: string, as: As = {}): Promise<string[]> {
  const { stdout } = await execute('sqlite3', [db, sql], { ...as, cwd: '/' });
  return stdout.split('\n').slice(0, -1);
}

/** As `sqlite3`, by Python's module. */
export async function python(db: string, sql: string, as: As = {}): Promise<string[]> {
  const { stdout } = await execute(PYTHON, ['-I', '-c', READ, db, sql], { ...as, cwd: '/' });
  return stdout.split('\n').slice(0, -1);
}
