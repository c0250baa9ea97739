import type { ChildProcess } from 'node:child_process';
import { subscribe } from 'node:diagnostics_channel';
import type { Reporter, TestCase, TestModule, Vitest } from 'vitest/node';

/** A test over this limit, in milliseconds of processor time, makes the quick run slow: tag it, or make it smaller. */
const QUICK_MS = 3_000;

/** The commands that run what `npm test` leaves out. The first tag of a test that is here counts. */
const COMMANDS = { service: 'test:service', stores: 'test:stores', slow: 'test:all' } as const;
type Tag = keyof typeof COMMANDS;
const TAGS = Object.keys(COMMANDS) as Tag[];

/** Judges the filters that package.json has: tags, or tags with `!`, joined by `&&`, and these joined by `||`. */
function isChosen(filters: readonly string[], tags: readonly string[]): boolean {
  const isTrue = (word: string): boolean => tags.includes(word.replace('!', '')) !== word.startsWith('!');
  return filters.every((filter) =>
    filter.split('||').some((all) => all.split('&&').every((one) => isTrue(one.trim()))),
  );
}

/**
 * Prints one machine-readable line after Vitest's summary, and before it: what Vitest omits if a worker process dies, which
 * tests the filter left out and which command runs them, and which tests are too slow for the quick run, which then fails.
 */
export default class ClosingLine implements Reporter {
  readonly #died: string[] = [];
  #filters: readonly string[] = [];

  onInit({ config }: Vitest): void {
    this.#filters = config.tagsFilter ?? [];
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
    const leftOut: Record<Tag | 'other', number> = { service: 0, stores: 0, slow: 0, other: 0 };
    const slow: TestCase[] = [];
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state === 'pending') this.#died.push(`not ended: ${module.relativeModuleId}: ${test.fullName}`);
        else if (state === 'skipped' && !isChosen(this.#filters, test.tags))
          leftOut[TAGS.find((tag) => test.tags.includes(tag)) ?? 'other']++;
        else count[state]++;
        if ((test.meta().processorMs ?? 0) > QUICK_MS && !test.tags.includes('slow')) slow.push(test);
      }
      // A file that could not be loaded has no tests; count the file.
      if (module.state() === 'failed' && [...module.children.allTests('failed')].length === 0) count.failed++;
    }
    for (const line of this.#died) process.stdout.write(`\n${line}`);
    for (const test of slow) {
      const seconds = (Number(test.meta().processorMs) / 1000).toFixed(1);
      process.stdout.write(`\nnot tagged slow, but ${seconds} s of processor time: ${test.fullName}`);
      count.failed++;
      process.exitCode = 1;
    }
    for (const tag of TAGS.filter((one) => leftOut[one] > 0 && !this.#filters.includes(one)))
      process.stdout.write(`\nleft out: ${leftOut[tag]} tests tagged ${tag}; npm run ${COMMANDS[tag]} runs them`);
    if (leftOut.other > 0) process.stdout.write(`\nleft out: ${leftOut.other} other tests; npm run test:all runs all`);
    process.stdout.write(`\n${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped\n`);
  }
}
