import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/support/longest-first.ts';

/** Folders whose tests leave the process clean, so that it loads the sources only once for all files. */
const SHARED = 'test/{catalog,client,commands,queue,report,sandbox,schedule,store,web,xml}/**/*.test.ts';

const TESTS = {
  setupFiles: ['test/support/keep-statements.ts', 'test/support/property-seed.ts'],
  // A zone with a half-hour offset, which reveals code that depends on the machine's zone.
  env: { TZ: 'Asia/Kolkata' },
  testTimeout: 120_000,
  hookTimeout: 60_000,
  // The default of one second is too short on a busy machine.
  expect: { poll: { timeout: 30_000 } },
  pool: 'forks' as const,
};

export default defineConfig({
  test: {
    reporters: ['default', './test/support/closing-line.ts'],
    globalSetup: ['test/support/build.ts'],
    // One more than CI's cores, because many tests wait.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    projects: [
      { test: { ...TESTS, name: 'shared', include: [SHARED], isolate: false } },
      { test: { ...TESTS, name: 'alone', include: ['test/**/*.test.ts'], exclude: [SHARED] } },
    ],
  },
});
