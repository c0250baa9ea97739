import { defineConfig } from 'vitest/config';
import { FAST_DIRECTORY } from './test/support/fast-directory.ts';
import { LongestFirst } from './test/support/longest-first.ts';

/** Tests that need a process of their own, because they measure its memory, or a disk from which programs can be run. */
const ALONE = [
  'test/{life,package}/**/*.test.ts',
  'test/{base/abort,docs/every-block,docs/examples,operate/years}.test.ts',
];

/** Chaos, kills, installs, containers, soaks, disks, browsers, and what waits for real time. */
const LONG = [
  'test/{browser,faults,life,many,ops,package}/**',
  'test/docs/every-block.test.ts',
  'test/examples/engine-kills.test.ts',
  'test/operate/{commands,keeper}.test.ts',
  'test/relay/{frozen,kill,killed-store,nonsense,restored-mirror,silent,slow-store,swift}.test.ts',
  'test/operate/years.test.ts',
  'test/store/{other-programs,same-file}.test.ts',
  'test/sync/{kill,redis-failover,redis-loss,two-daemons}.test.ts',
  'test/http/{event-source,slow-reader,waiting}.test.ts',
];
const isAsked = process.env.npm_lifecycle_event === 'test:all' || process.argv.some((word) => word.startsWith('test/'));
const SKIPPED = process.env.CI !== undefined || isAsked ? [] : LONG;

const TESTS = {
  setupFiles: ['test/support/keep-statements.ts', 'test/support/property-seed.ts'],
  // A machine that does other things too may be several times slower.
  testTimeout: 300_000,
  hookTimeout: 120_000,
  // The default of one second is too short on a busy machine.
  expect: { poll: { timeout: 30_000 } },
  pool: 'forks' as const,
};

// A zone with a half-hour offset, which reveals code that depends on the machine's zone.
const ENV = { TZ: 'Asia/Kolkata' };

export default defineConfig({
  test: {
    reporters: ['default', './test/support/closing-line.ts'],
    globalSetup: ['test/support/build.ts'],
    // Twice the cores of CI, because many tests wait.
    maxWorkers: 4,
    sequence: { sequencer: LongestFirst },
    projects: [
      // One process loads the sources once for many files.
      {
        test: {
          ...TESTS,
          name: 'shared',
          include: ['test/**/*.test.ts'],
          exclude: [...ALONE, ...SKIPPED],
          isolate: false,
          env: { ...ENV, TMPDIR: FAST_DIRECTORY },
        },
      },
      { test: { ...TESTS, name: 'alone', include: ALONE, exclude: SKIPPED, env: ENV } },
    ],
  },
});
