import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { faketimeLibrary } from './tools.ts';

/** The clock of a machine, which can be put forward and back while its processes run. */
export interface MachineClock {
  /** For the processes of the machine. */
  readonly env: Readonly<Record<string, string>>;
  /** From the real time; milliseconds. */
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
      // Timers go on as they would when somebody sets a clock.
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      // Times of files stay those of the file system.
      NO_FAKE_STAT: '1',
      // A killed process would leave its shared memory behind.
      FAKETIME_DISABLE_SHM: '1',
    },
    offsetMs: () => offsetMs,
    set: (ms) => {
      offsetMs = ms;
      write();
    },
  };
}
