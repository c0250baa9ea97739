import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/support/longest-first.ts';

/** Folders whose tests leave nothing behind in the process: it need not load the sources again for each file. */
const SHARED = 'test/{catalog,client,commands,queue,sandbox,schedule,store,web,xml}/**/*.test.ts';

const TESTS = {
  setupFiles: ['test/support/keep-statements.ts', 'test/support/property-seed.ts'],
  // Half an hour off from all others, and never UTC: what a machine's zone changes shows.
  env: { TZ: 'Asia/Kolkata' },
  testTimeout: 120_000,
  hookTimeout: 60_000,
  // A busy machine may take longer than the second that is the default.
  expect: { poll: { timeout: 30_000 } },
  pool: 'forks' as const,
};

export default defineConfig({
  test: {
    reporters: ['default', './test/support/closing-line.ts'],
    globalSetup: ['test/support/build.ts'],
    // One more than a machine of CI has cores, because many tests wait.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    projects: [
      { test: { ...TESTS, name: 'shared', include: [SHARED], isolate: false } },
      { test: { ...TESTS, name: 'alone', include: ['test/**/*.test.ts'], exclude: [SHARED] } },
    ],
  },
});
