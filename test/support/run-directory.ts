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
 * Fills a directory with new data. In a run of the tests only the first process makes them, and the others copy: databases
 * take a second of processor time to make their data, and a tenth to copy them.
 */
export function copyNewData(name: string, directory: string, make: (directory: string) => void): void {
  const run = process.env[NAME];
  if (run === undefined) {
    make(directory);
    return;
  }
  const template = join(run, name);
  if (!existsSync(template)) {
    const made = `${template}-${process.pid}`;
    mkdirSync(made);
    make(made);
    try {
      renameSync(made, template);
    } catch {
      // Another process was faster.
    }
  }
  cpSync(template, directory, { recursive: true });
}
