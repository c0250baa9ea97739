import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** Creates a directory for the test; kept if the test fails. */
export function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'catchword-test-'));
  onTestFinished(({ task }) => {
    if (task.result?.state !== 'fail') rmSync(directory, { recursive: true, force: true });
  });
  return directory;
}
