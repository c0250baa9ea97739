import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { env } from 'node:process';
import { postgresAvailable } from '@catchword/testing/postgres';

/** Looks for the file only, because `pm2 --version` would start its daemon. */
const COMMANDS = ['sqlite3', 'python3', 'pm2'] as const;

function isOnPath(command: string): boolean {
  return (env.PATH ?? '').split(':').some((directory) => directory !== '' && existsSync(join(directory, command)));
}

/** The library of Debian's package libfaketime, for any architecture; undefined if it is not installed. */
export const faketimeLibrary: string | undefined = readdirSync('/usr/lib')
  .map((directory) => join('/usr/lib', directory, 'faketime/libfaketime.so.1'))
  .find((path) => existsSync(path));

function missingTools(): string[] {
  const missing = COMMANDS.filter((command) => !isOnPath(command)).map(String);
  if (faketimeLibrary === undefined) missing.push('libfaketime');
  if (!postgresAvailable) missing.push('PostgreSQL');
  if (missing.length === 0) return [];
  if (env.CI !== undefined) throw new Error(`${missing.join(', ')}: needed on CI (see .ci/run)`);
  process.stderr.write(`${missing.join(', ')}: not installed, so the life of an installation is not tested\n`);
  return missing;
}

export const toolsAvailable = missingTools().length === 0;
