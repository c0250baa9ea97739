import type { Reporter, TestModule } from 'vitest/node';

/** Prints one machine-readable line after Vitest's summary. */
export default class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const count = { passed: 0, failed: 0, skipped: 0 };
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state !== 'pending') count[state]++;
      }
      // A file that could not be loaded has no tests; count the file.
      if (module.state() === 'failed' && [...module.children.allTests('failed')].length === 0) count.failed++;
    }
    process.stdout.write(`\n${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped\n`);
  }
}
