import { describe, expect, it } from 'vitest';
import { createChangeNotifier } from '../../src/web/change-notifier.ts';
import { createVirtualClock } from '../support/test-clocks.ts';

function notifierOf(lastSeq: () => number) {
  const clock = createVirtualClock();
  let polls = 0;
  const notifier = createChangeNotifier(clock, 250, () => {
    polls++;
    return lastSeq();
  });
  return { clock, notifier, polls: () => polls, now: clock.now() };
}

const never = new AbortController().signal;

describe('a change notifier', () => {
  it('polls once for all waiters, and not at all without waiters', async () => {
    let last = 7;
    const { clock, notifier, polls, now } = notifierOf(() => last);
    expect(polls()).toBe(0);
    const waits = Array.from({ length: 100 }, (_, index) =>
      notifier.wait(7 + (index % 2), now + 60_000, new AbortController().signal),
    );
    await clock.sleep(1_000 - 1);
    expect(polls()).toBe(3);
    last = 9;
    expect(await Promise.all(waits)).toEqual(Array(100).fill(true));
    expect(polls()).toBe(4);
    await clock.sleep(10_000);
    expect(polls()).toBe(4);
    expect(await notifier.wait(8, clock.now() + 60_000, never)).toBe(true);
    expect(polls()).toBe(5);
  });

  it('wakes only waiters that have not seen the change', async () => {
    let last = 7;
    const { notifier, now } = notifierOf(() => last);
    const [behind, ahead] = [notifier.wait(7, now + 5_000, never), notifier.wait(8, now + 5_000, never)];
    last = 8;
    expect(await behind).toBe(true);
    expect(await ahead).toBe(false);
  });

  it('stops waiting at the deadline or when the signal aborts', async () => {
    const { clock, notifier, polls, now } = notifierOf(() => 7);
    const leaving = new AbortController();
    const [short, long, left] = [
      notifier.wait(7, now + 600, never),
      notifier.wait(7, now + 1_100, never),
      notifier.wait(7, now + 60_000, leaving.signal),
    ];
    expect(await short).toBe(false);
    expect(clock.now()).toBe(now + 750);
    expect(await long).toBe(false);
    expect(clock.now()).toBe(now + 1_250);
    leaving.abort();
    expect(await left).toBe(false);
    expect(await notifier.wait(7, now + 60_000, AbortSignal.abort())).toBe(false);
    const before = polls();
    await clock.sleep(5_000);
    expect(polls()).toBe(before);
  });

  it('rejects every waiter when the mirror cannot be read, and works again later', async () => {
    let broken = true;
    const { notifier, now } = notifierOf(() => {
      if (broken) throw new Error('disk I/O error');
      return 9;
    });
    const waits = [notifier.wait(7, now + 60_000, never), notifier.wait(8, now + 60_000, never)];
    for (const outcome of await Promise.allSettled(waits))
      expect(outcome).toMatchObject({ status: 'rejected', reason: { message: 'disk I/O error' } });
    broken = false;
    expect(await notifier.wait(7, now + 60_000, never)).toBe(true);
  });
});
