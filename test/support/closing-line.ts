import type { ChildProcess } from 'node:child_process';
import { subscribe } from 'node:diagnostics_channel';
import type { Reporter, TestModule } from 'vitest/node';

/** Prints one machine-readable line after Vitest's summary, and before it what Vitest omits if a worker process dies. */
export default class ClosingLine implements Reporter {
  readonly #died: string[] = [];

  onInit(): void {
    subscribe('child_process', (message) => {
      const { process: child } = message as { readonly process: ChildProcess };
      child.once('exit', (code, signal) => {
        // Vitest ends its workers with SIGTERM.
        if (code !== 0 && signal !== 'SIGTERM')
          this.#died.push(`process ${child.pid} ended: ${signal ?? `exit ${code}`}`);
      });
    });
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const count = { passed: 0, failed: 0, skipped: 0 };
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state !== 'pending') count[state]++;
        else this.#died.push(`not ended: ${module.relativeModuleId}: ${test.fullName}`);
      }
      // A file that could not be loaded has no tests; count the file.
      if (module.state() === 'failed' && [...module.children.allTests('failed')].length === 0) count.failed++;
    }
    for (const line of this.#died) process.stdout.write(`\n${line}`);
    process.stdout.write(`\n${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped\n`);
  }
}
