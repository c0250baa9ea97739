import { unlessAborted } from '@catchword/base/abort';
import type { Clock } from '@catchword/base/clock';
import { expect, it } from 'vitest';
import { hastyClock, until } from '../../src/contract/harness.ts';
import { books, temporaryMirror } from './feeding.ts';
import { memory } from './memory.ts';

it('wakes an idle sink when this process records changes', async () => {
  const target = memory();
  const harness = temporaryMirror();
  /** The signals of those who wait. Time stands still. */
  const waiting: AbortSignal[] = [];
  const clock: Clock = {
    ...hastyClock,
    sleep: (_ms, signal = new AbortController().signal) => {
      waiting.push(signal);
      return unlessAborted(new Promise(() => {}), signal);
    },
  };
  harness.start(target.config(), { clock });
  for (const version of [1, 2, 3]) {
    // One waits to renew the lease.
    await until('the sink is idle', () => waiting.filter(({ aborted }) => !aborted).length === 2);
    harness.change(books(5, version));
    await until('the sink has everything', () => target.rows.length === 5 * version);
  }
  expect(target.seqs()).toEqual(harness.events().map(({ seq }) => seq));
});
