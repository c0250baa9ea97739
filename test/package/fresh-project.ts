import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach } from 'vitest';

/** Makes a directory for all tests of a file. */
export function directoryOfFile(name: string): string {
  const directory = mkdtempSync(join(tmpdir(), `catchword-${name}-`));
  afterAll(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** Runs `work` before the tests of a file. If it fails, the registry cannot be reached: the tests are skipped, or fail in CI. */
export function installFirst(what: string, work: () => Promise<unknown>): void {
  let isInstalled = false;
  beforeAll(async () => {
    try {
      await work();
      isInstalled = true;
    } catch (error) {
      if (process.env.CI !== undefined) throw error;
      process.stderr.write(`${what} cannot be installed from the registry: its tests are skipped\n`);
    }
  }, 600_000);
  beforeEach(({ skip }) => skip(!isInstalled));
}
