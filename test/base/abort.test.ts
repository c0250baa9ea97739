import { getEventListeners } from 'node:events';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { unlessAborted, withAbort, withDeadline } from '@catchword/base/abort';
import { systemClock } from '@catchword/base/clock';
import { startRawSource } from '@catchword/testing/raw-source';
import { createCatalogClient } from 'catchword-client/catalog-client';
import { expect, it, onTestFinished } from 'vitest';
import { checkedSettings } from '../../src/cli/commands/shared/checked-settings.ts';
import { settingsFor } from '../support/mirror.ts';

/** Counts the listeners of a signal, and the signals that `AbortSignal.any` derived from it. */
function dependentsOf(signal: AbortSignal): number {
  const held = Object.getOwnPropertySymbols(signal)
    .filter(({ description }) => description === 'kDependantSignals')
    .map((symbol) => (signal as unknown as Record<symbol, Set<unknown> | undefined>)[symbol]?.size ?? 0);
  return getEventListeners(signal, 'abort').length + held.reduce((sum, size) => sum + size, 0);
}

function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
}

it('a signal that lives as long as the process does not leak memory over 10,000 requests', {
  tags: ['slow'],
}, async () => {
  const source = await startRawSource([Buffer.from('{"vbid":"A"}')]);
  const config = checkedSettings(settingsFor(source.url, 'unused.db'), 'source');
  const client = createCatalogClient(config, systemClock);
  onTestFinished(() => client.close());
  const { signal } = new AbortController();
  const window = { page: 1, perPage: 10 };
  const task = { mirror: 'm', runId: 1, pass: 0, window, from: null, maxAttempts: 1 };
  async function ask(count: number): Promise<number> {
    for (let asked = 0; asked < count; asked += 8) {
      await Promise.all(Array.from({ length: 8 }, () => client.read(task, signal)));
    }
    (source.requests as URL[]).length = 0;
    collectGarbage();
    return process.memoryUsage().heapUsed;
  }
  const before = await ask(1_000);
  const after = await ask(10_000);
  expect(dependentsOf(signal)).toBe(0);
  // Leaking a timer alone would take more than 200 bytes a request.
  expect(after - before).toBeLessThan(1_500_000);
});

it('a signal that lives as long as the process has no listeners left after work that succeeded, failed, was late or was aborted', async () => {
  const long = new AbortController();
  const other = new AbortController();
  const limit = { timeoutMs: 1, reason: () => new Error('late') };
  const untilAborted = (signal: AbortSignal) => unlessAborted(new Promise<never>(() => {}), signal);
  expect(await withAbort([long.signal, other.signal], async () => 'done', limit)).toBe('done');
  await expect(withAbort([long.signal], () => Promise.reject(new Error('failed')))).rejects.toThrow('failed');
  await expect(withAbort([long.signal], untilAborted, limit)).rejects.toThrow('late');
  await expect(withDeadline(long.signal, limit, untilAborted)).rejects.toThrow('late');
  const givenUp = withAbort([long.signal, other.signal], untilAborted);
  other.abort(new Error('given up'));
  await expect(givenUp).rejects.toThrow('given up');
  await expect(withAbort([long.signal, other.signal], untilAborted)).rejects.toThrow('given up');
  expect(dependentsOf(long.signal)).toBe(0);
  expect(dependentsOf(other.signal)).toBe(0);
});

it('dependentsOf counts derived signals (a check of this file)', () => {
  const { signal } = new AbortController();
  const made = AbortSignal.any([signal]);
  // Node.js 24 derives a signal only when it has a listener.
  made.addEventListener('abort', () => {});
  expect(dependentsOf(signal)).toBe(1);
  expect(made.aborted).toBe(false);
});
