import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    reporters: ['default', './test/support/closing-line.ts'],
    globalSetup: ['test/support/build.ts'],
    setupFiles: ['test/support/keep-statements.ts', 'test/support/property-seed.ts'],
    // Half an hour off from all others, and never UTC: what a machine's zone changes shows.
    env: { TZ: 'Asia/Kolkata' },
    testTimeout: 120_000,
    hookTimeout: 60_000,
    // A busy machine may take longer than the second that is the default.
    expect: { poll: { timeout: 30_000 } },
    pool: 'forks',
    maxWorkers: 2,
  },
});
