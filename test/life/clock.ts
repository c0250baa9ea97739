import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { faketimeLibrary } from './tools.ts';

const SHARED = '/dev/shm';

/** The shared memory and semaphores of libfaketime, each named after the process that created it. */
export function sharedByFaketime(): string[] {
  if (!existsSync(SHARED)) return [];
  return readdirSync(SHARED).filter((name) => /^(sem\.)?faketime_(sem|shm)_\d+$/.test(name));
}

/** Removes those that killed processes left behind, but not those that existed `before`. */
export function removeShared(before: readonly string[]): void {
  for (const name of sharedByFaketime()) if (!before.includes(name)) rmSync(join(SHARED, name), { force: true });
}

/** The clock of a machine, which can be changed while its processes run. */
export interface MachineClock {
  /** The environment for the processes of the machine. */
  readonly env: Readonly<Record<string, string>>;
  /** Difference from the real time, milliseconds. */
  offsetMs(): number;
  /** Running processes notice within a second. */
  set(offsetMs: number): void;
}

export function createMachineClock(directory: string, name: string): MachineClock {
  const file = join(directory, `${name}.clock`);
  let offsetMs = 0;
  const write = (): void => writeFileSync(file, `${offsetMs < 0 ? '' : '+'}${offsetMs / 1000}\n`);
  write();
  return {
    env: {
      LD_PRELOAD: faketimeLibrary ?? '',
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_CACHE_DURATION: '1',
      // Timers are not affected, as when an operator sets a clock.
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      // File times are not affected.
      NO_FAKE_STAT: '1',
    },
    offsetMs: () => offsetMs,
    set: (ms) => {
      offsetMs = ms;
      write();
    },
  };
}
