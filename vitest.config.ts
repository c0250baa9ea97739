import { defineConfig } from 'vitest/config';
import { FAST_DIRECTORY } from './packages/testing/src/fast-directory.ts';

/** Tests that need a process of their own, because they measure its memory, or a disk from which programs can be run. */
const ALONE = [
  'test/{life,package}/**/*.test.ts',
  'test/{base/abort,docs/every-block,docs/examples,operate/years}.test.ts',
];

const TESTS = {
  setupFiles: ['test/support/processor-time.ts', 'test/support/keep-statements.ts', 'test/support/property-seed.ts'],
  // A machine that does other things too may be several times slower.
  testTimeout: 300_000,
  hookTimeout: 300_000,
  // The default of one second is too short on a busy machine.
  expect: { poll: { timeout: 30_000 } },
  pool: 'forks' as const,
};

// A zone with a half-hour offset, which reveals code that depends on the machine's zone.
const ENV = { TZ: 'Asia/Kolkata' };

export default defineConfig({
  test: {
    // The scripts of package.json choose by these tags; a run without a filter takes every test.
    tags: [
      { name: 'slow', description: 'Takes over a second of a quiet machine, or waits for real time.' },
      { name: 'stores', description: 'Needs a server, a browser or another program that is not from npm.' },
      { name: 'service', description: 'Compares the client and the sandbox with the interface of the service.' },
    ],
    // A run ends, also on a terminal, unless it is asked for with --watch.
    watch: false,
    reporters: ['default', './test/support/closing-line.ts'],
    globalSetup: ['test/support/build.ts', 'packages/testing/src/run-directory.ts'],
    // Twice the cores of CI, because many tests wait.
    maxWorkers: 4,
    projects: [
      // One process loads the sources once for many files.
      {
        test: {
          ...TESTS,
          name: 'shared',
          include: ['{test,packages/*/test}/**/*.test.ts'],
          exclude: ALONE,
          isolate: false,
          env: { ...ENV, TMPDIR: FAST_DIRECTORY },
        },
      },
      { test: { ...TESTS, name: 'alone', include: ALONE, env: ENV } },
    ],
  },
});
