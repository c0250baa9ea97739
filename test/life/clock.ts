import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { faketimeLibrary } from './tools.ts';

const SHARED = '/dev/shm';

/** The shared memory and semaphores of libfaketime, each named after the process that created it. */
export function sharedByFaketime(): string[] {
  if (!existsSync(SHARED)) return [];
  return readdirSync(SHARED).filter((name) => /^(sem\.)?faketime_(sem|shm)_\d+$/.test(name));
}

/** Removes what killed processes left there, but nothing that existed `before`. */
export function removeShared(before: readonly string[]): void {
  for (const name of sharedByFaketime()) if (!before.includes(name)) rmSync(join(SHARED, name), { force: true });
}

/** The clock of a machine, which can be changed while its processes run. */
export function createMachineClock(directory: string, name: string) {
  const file = join(directory, `${name}.clock`);
  let offsetMs = 0;
  const set = (ms: number): void => {
    offsetMs = ms;
    writeFileSync(file, `${ms < 0 ? '' : '+'}${ms / 1000}\n`);
  };
  set(0);
  return {
    /** The environment for the processes of the machine. */
    env: {
      LD_PRELOAD: faketimeLibrary ?? '',
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_CACHE_DURATION: '1',
      // Timers are not affected, as when an operator sets a clock.
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      // File times are not affected.
      NO_FAKE_STAT: '1',
    },
    /** Difference from the real time, milliseconds. */
    offsetMs: () => offsetMs,
    /** Running processes notice within a second. */
    set,
  };
}
