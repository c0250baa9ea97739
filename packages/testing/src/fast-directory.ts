import { existsSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';

const MEMORY = '/dev/shm';
/** Containers often have 64 MB there, which some tests need for one file. */
const ENOUGH = 2 ** 30;

function hasRoom(directory: string): boolean {
  const { bavail, bsize } = statfsSync(directory);
  return bavail * bsize >= ENOUGH;
}

/** An in-memory directory, if there is a large one, for files whose syncs the test does not need. */
export const FAST_DIRECTORY = existsSync(MEMORY) && hasRoom(MEMORY) ? MEMORY : tmpdir();
