import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { FAST_DIRECTORY } from './fast-directory.ts';

/** Names the directory to the processes of the tests. */
const NAME = 'CATCHWORD_TEST_RUN';

/** Makes a directory for files that all tests of a run share. Vitest calls this before the tests, and its result after them. */
export default function makeRunDirectory(): () => void {
  const directory = mkdtempSync(join(FAST_DIRECTORY, 'catchword-tests-'));
  // Servers run as other users.
  chmodSync(directory, 0o711);
  process.env[NAME] = directory;
  return () => rmSync(directory, { recursive: true, force: true });
}

/**
 * Makes a directory once for a whole run: the first process that needs it makes it, and the others find it.
 * @returns its path, for reading only
 */
export function madeOnce(name: string, make: (directory: string) => void): string {
  const run = process.env[NAME];
  if (run === undefined) throw new Error('only a run of the tests has a directory for all of them');
  const shared = join(run, name);
  if (!existsSync(shared)) {
    const made = `${shared}-${process.pid}`;
    mkdirSync(made);
    make(made);
    try {
      renameSync(made, shared);
    } catch {
      // Another process was faster.
    }
  }
  return shared;
}

/**
 * Fills a directory with new data. In a run of the tests only the first process makes them, and the others copy: databases
 * take a second of processor time to make their data, and a tenth to copy them.
 */
export function copyNewData(name: string, directory: string, make: (directory: string) => void): void {
  if (process.env[NAME] === undefined) make(directory);
  else cpSync(madeOnce(name, make), directory, { recursive: true });
}
