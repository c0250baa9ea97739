import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';

/** An in-memory directory, if there is one, for files whose syncs the test does not need. */
export const FAST_DIRECTORY = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();
