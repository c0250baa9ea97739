import { setImmediate as turn } from 'node:timers/promises';
import { createPauses, type Pause, type Pauses, systemClock } from '@catchword/base/clock';
import { CatchwordError } from '@catchword/base/errors';
import { createLog } from '@catchword/base/log';
import { createPacer } from '@catchword/pace/pacer';
import { createEmbeddedQueue } from '@catchword/queue/embedded-queue';
import { collect, itKeepsTheContract } from '@catchword/testing/queue-contract';
import { createGate, createScriptedSource, type ScriptedSource, task } from '@catchword/testing/scripted-source';
import { createVirtualClock } from '@catchword/testing/test-clocks';
import { describe, expect, it } from 'vitest';

const log = createLog('silent');

/** A queue without a rate limit. */
function queueOf(source: ScriptedSource, concurrency: number) {
  const pacer = createPacer({ pace: null, clock: systemClock });
  return createEmbeddedQueue({ read: source.read, concurrency, pacer, clock: systemClock, log });
}

describe('in one process', () => {
  const clock = createVirtualClock();

  itKeepsTheContract(clock, async ({ read, concurrency, intervalMs }) => {
    const pacer = createPacer({ pace: intervalMs === null ? null : { intervalMs, slackMs: 0 }, clock });
    const queue = createEmbeddedQueue({ read, concurrency, pacer, clock, log });
    return { queue, lose: () => queue.drop(1), close: () => queue.close() };
  });

  it('the embedded queue reads no further ahead than its concurrency while an outcome is being handled', async () => {
    const gate = createGate();
    const source = createScriptedSource(systemClock);
    const queue = queueOf(source, 3);
    const handling = createGate();
    const { count } = await collect(queue, async () => {
      handling.open();
      await gate.passed;
    });
    await queue.add(Array.from({ length: 9 }, (_, index) => task(index + 1)));
    await handling.passed;
    while (source.requests.length < 3 || source.inFlight() > 0) await turn();
    await turn();
    expect(source.requests).toHaveLength(3);
    gate.open();
    await count(9);
    await queue.close();
  });

  it('the embedded queue notes the pause that the source asks for, and retries as soon as that is forgotten', async () => {
    const known = createPauses();
    const noted: Pause[] = [];
    const pauses: Pauses = {
      current: (nowMs) => known.current(nowMs),
      note: (pause) => {
        noted.push(pause);
        known.note(pause);
        void clock.sleep(5_000).then(() => known.forget());
      },
    };
    let refusedAt = 0;
    const source = createScriptedSource(clock, (_, nth) => {
      if (nth > 1) return;
      refusedAt = clock.now();
      throw new CatchwordError('SOURCE_RATE_LIMITED', 'the source answers 429', { retryAfterMs: 1_800_000 });
    });
    const pacer = createPacer({ pace: null, clock, pauses });
    const queue = createEmbeddedQueue({ read: source.read, concurrency: 1, pacer, clock, log });
    const { count } = await collect(queue);
    await queue.add([task(1)]);
    await count(1);
    expect(noted).toEqual([{ since: refusedAt, until: refusedAt + 1_800_000 }]);
    expect((source.requests[1]?.at ?? 0) - refusedAt).toBeGreaterThanOrEqual(5_000);
    expect(clock.now() - refusedAt).toBeLessThan(60_000);
    await queue.close();
  });

  it('the embedded queue does not wait for a delayed retry when it is closed', async () => {
    const refused = createGate();
    const source = createScriptedSource(systemClock, () => {
      refused.open();
      throw new CatchwordError('SOURCE_RATE_LIMITED', 'the source answers 429', { retryAfterMs: 3_600_000 });
    });
    const queue = queueOf(source, 1);
    const { outcomes } = await collect(queue);
    await queue.add([task(1), task(2)]);
    await refused.passed;
    await queue.close();
    expect(outcomes).toEqual([]);
  });
});
