import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';

/** For files that are synced often and prove nothing by it: in memory, where nothing waits for a disk. */
export const FAST_DIRECTORY = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();
