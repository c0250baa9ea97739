import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import type { Clock } from '../../src/clock.ts';
import { CatchwordError } from '../../src/errors.ts';
import { createLog } from '../../src/log.ts';
import { startRunDesk } from '../../src/schedule/run-desk.ts';
import { openStore } from '../../src/store/store.ts';
import { temporaryDirectory } from '../support/mirror.ts';

it('a clock that is put back while a pause lasts does not make it longer', async () => {
  let now = Date.UTC(2026, 10, 20, 12);
  let slept = 0;
  const clock: Clock = {
    now: () => now,
    random: () => 1,
    sleep: async (ms, signal) => {
      await turn();
      signal?.throwIfAborted();
      slept += ms;
      now += ms;
    },
  };
  const store = openStore(join(temporaryDirectory(), 'catalog.db'));
  onTestFinished(() => store.close());
  let tries = 0;
  let waitedMs = 0;
  const failing = async (): Promise<null> => {
    if (++tries > 1) {
      waitedMs = slept;
      return null;
    }
    // Put right after the pause was noted.
    setImmediate(() => {
      now -= 2 * 3_600_000;
    });
    throw new CatchwordError('SOURCE_UNAVAILABLE', 'no answer');
  };
  const never = async (): Promise<never> => {
    throw new Error('it is not asked for');
  };
  const keeper = { run: failing, resume: async () => null, adopt: never };
  const desk = startRunDesk({ keeper, store, clock, log: createLog('silent') });
  desk.submit({ kind: 'full' });
  await expect.poll(() => tries).toBe(1);
  desk.submit({ kind: 'full' });
  await expect.poll(() => tries).toBe(2);
  expect(waitedMs).toBeLessThan(10 * 60_000);
  await desk.stop();
});
