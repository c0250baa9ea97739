import { describe, expect, it } from 'vitest';
import { createNews } from '../../src/web/change-notifier.ts';
import { createVirtualClock } from '../support/test-clocks.ts';

function newsOf(lastSeq: () => number) {
  const clock = createVirtualClock();
  let looks = 0;
  const news = createNews({
    clock,
    pollMs: 250,
    lastSeq: () => {
      looks++;
      return lastSeq();
    },
  });
  return { clock, news, looks: () => looks, now: clock.now() };
}

const never = new AbortController().signal;

describe('news', () => {
  it('are looked for once for all who wait, and not for nobody', async () => {
    let last = 7;
    const { clock, news, looks, now } = newsOf(() => last);
    expect(looks()).toBe(0);
    const waits = Array.from({ length: 100 }, (_, index) =>
      news.wait(7 + (index % 2), now + 60_000, new AbortController().signal),
    );
    await clock.sleep(1_000 - 1);
    expect(looks()).toBe(3);
    last = 9;
    expect(await Promise.all(waits)).toEqual(Array(100).fill(true));
    expect(looks()).toBe(4);
    await clock.sleep(10_000);
    expect(looks()).toBe(4);
    expect(await news.wait(8, clock.now() + 60_000, never)).toBe(true);
    expect(looks()).toBe(5);
  });

  it('are for those only who have not seen them', async () => {
    let last = 7;
    const { news, now } = newsOf(() => last);
    const [behind, ahead] = [news.wait(7, now + 5_000, never), news.wait(8, now + 5_000, never)];
    last = 8;
    expect(await behind).toBe(true);
    expect(await ahead).toBe(false);
  });

  it('are not waited for longer than asked, or once nobody wants them', async () => {
    const { clock, news, looks, now } = newsOf(() => 7);
    const leaving = new AbortController();
    const [short, long, left] = [
      news.wait(7, now + 600, never),
      news.wait(7, now + 1_100, never),
      news.wait(7, now + 60_000, leaving.signal),
    ];
    expect(await short).toBe(false);
    expect(clock.now()).toBe(now + 750);
    expect(await long).toBe(false);
    expect(clock.now()).toBe(now + 1_250);
    leaving.abort();
    expect(await left).toBe(false);
    expect(await news.wait(7, now + 60_000, AbortSignal.abort())).toBe(false);
    const before = looks();
    await clock.sleep(5_000);
    expect(looks()).toBe(before);
  });

  it('that cannot be read are told to all, and may be had later', async () => {
    let broken = true;
    const { news, now } = newsOf(() => {
      if (broken) throw new Error('disk I/O error');
      return 9;
    });
    const waits = [news.wait(7, now + 60_000, never), news.wait(8, now + 60_000, never)];
    for (const outcome of await Promise.allSettled(waits))
      expect(outcome).toMatchObject({ status: 'rejected', reason: { message: 'disk I/O error' } });
    broken = false;
    expect(await news.wait(7, now + 60_000, never)).toBe(true);
  });
});
