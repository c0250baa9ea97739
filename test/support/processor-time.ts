import { readFileSync } from 'node:fs';
import { afterEach, beforeEach } from 'vitest';

declare module 'vitest' {
  interface TaskMeta {
    /** Processor time of the test with its hooks and the processes that it started and that ended, in milliseconds. */
    processorMs?: number;
  }
}

/** @returns this process's processor time and that of its ended children, in milliseconds */
function processorMs(): number {
  if (process.platform !== 'linux') {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  }
  // After the name, which may contain spaces: utime, stime, cutime and cstime, in hundredths of a second.
  const stat = readFileSync('/proc/self/stat', 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields.slice(11, 15).reduce((sum, field) => sum + Number(field) * 10, 0);
}

let before = 0;
beforeEach(() => {
  before = processorMs();
});
afterEach(({ task }) => {
  task.meta.processorMs = processorMs() - before;
});
