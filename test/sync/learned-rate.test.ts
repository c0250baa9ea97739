import type { Clock } from '@catchword/base/clock';
import type { Notice } from '@catchword/base/log';
import type { Rate } from '@catchword/pace/pace';
import type { Pacer } from '@catchword/pace/pacer';
import { createVirtualClock } from '@catchword/testing/test-clocks';
import { expect, it } from 'vitest';
import { mirrorPacer } from '../../src/sync/shared-pace.ts';
import { openedStore } from '../store/opened-store.ts';

const MINUTE_MS = 60_000;
const LATENCY_MS = 50;
const MINUTES = 30;
const FIFTY: Rate = { requests: 50, windowMs: MINUTE_MS };
/** Requests in flight. */
const CONCURRENCY = 8;

/** A source that counts requests in fixed windows. @param taken requests of other programs in a window */
function limitedSource(
  { requests, windowMs }: Rate,
  clock: Clock,
  sendsRetryAfter: boolean,
  taken: (nowMs: number) => number = () => 0,
) {
  let [window, used] = [0, 0];
  const refused: number[] = [];
  const accepted: number[] = [];
  return {
    refused,
    accepted,
    /** @returns what the error of a refusal says; null if the request was accepted */
    ask: () => {
      const now = clock.now();
      const current = Math.floor(now / windowMs);
      if (current !== window) [window, used] = [current, 0];
      if (++used + taken(now) <= requests) {
        accepted.push(now);
        return null;
      }
      refused.push(now);
      const retryAfterMs = Math.ceil(((current + 1) * windowMs - now) / 1_000) * 1_000;
      return { code: 'SOURCE_RATE_LIMITED', retryAfterMs: sendsRetryAfter ? retryAfterMs : undefined } as const;
    },
  };
}

async function useFor(pacer: Pacer, { ask }: ReturnType<typeof limitedSource>, clock: Clock, minutes: number) {
  const until = clock.now() + minutes * MINUTE_MS;
  const { signal } = new AbortController();
  const one = async (): Promise<void> => {
    while (clock.now() < until) {
      await pacer.acquire(signal);
      await clock.sleep(LATENCY_MS);
      const error = ask();
      if (error === null) pacer.succeeded();
      else void pacer.heed(error);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, one));
}

interface Scene {
  /** Default: 50 a minute. */
  readonly rate?: Rate;
  readonly sendsRetryAfter?: boolean;
  /** Requests of other programs in a window. */
  readonly taken?: (nowMs: number) => number;
  readonly configured?: Rate | null;
  readonly tell?: (notice: Notice) => void;
}

/** A mirror, its source, and processes that ask it. */
function scene({ rate = FIFTY, sendsRetryAfter = true, taken, configured = null, tell = () => {} }: Scene = {}) {
  const clock = createVirtualClock();
  const store = openedStore();
  const source = limitedSource(rate, clock, sendsRetryAfter, taken);
  const startProcess = () => mirrorPacer({ config: { rateLimit: configured }, clock, tell }, store);
  return {
    clock,
    source,
    startProcess,
    learnRate: store.source.learnRate,
    learned: () => store.source.learnedRate(),
    use: (minutes: number, pacer = startProcess()) => useFor(pacer, source, clock, minutes),
  };
}

const LIMITS: readonly (readonly [string, Rate, boolean])[] = [
  ['50/min', FIFTY, true],
  ['3/s', { requests: 3, windowMs: 1_000 }, true],
  ['50/min without Retry-After', FIFTY, false],
];

it.each(LIMITS)(
  'a process learns a limit of %s, uses most of it and is seldom refused',
  { tags: ['slow'] },
  async (_, rate, sendsRetryAfter) => {
    const { source, use } = scene({ rate, sendsRetryAfter });
    await use(5);
    const learnedFrom = { refused: source.refused.length, accepted: source.accepted.length };
    // A process that starts later begins with what the one before has learned.
    await use(MINUTES);
    const perMinute = (rate.requests * MINUTE_MS) / rate.windowMs;
    const accepted = source.accepted.length - learnedFrom.accepted;
    const refusals = source.refused.length - learnedFrom.refused;
    expect(accepted).toBeGreaterThan(0.7 * MINUTES * perMinute);
    expect(refusals).toBeLessThan(0.02 * accepted + MINUTES);
  },
);

it('a learned limit is not lowered further while another program uses the quota up, and grows again afterwards', {
  tags: ['slow'],
}, async () => {
  const begun = createVirtualClock().now();
  const outage = { from: begun + 15 * MINUTE_MS, until: begun + 45 * MINUTE_MS };
  const taken = (now: number): number => (now >= outage.from && now < outage.until ? 50 : 0);
  const { source, startProcess, use, learned } = scene({ sendsRetryAfter: false, taken });
  const pacer = startProcess();
  await use(45, pacer);
  expect(source.refused.filter((at) => taken(at) > 0).length).toBeGreaterThan(500);
  expect(learned()?.perMinute).toBeGreaterThanOrEqual(0.4 * 50);
  // It is not raised either by requests that were refused.
  expect(learned()?.perMinute).toBeLessThan(60);
  const before = source.accepted.length;
  await use(30, pacer);
  expect(source.accepted.length - before).toBeGreaterThan(0.7 * 30 * 50);
});

it('a limit that was learned too low grows to the true one within an hour of use', { tags: ['slow'] }, async () => {
  const { clock, source, startProcess, use, learnRate, learned } = scene();
  learnRate(() => ({ refusedAt: 2, perMinute: 2 }));
  const pacer = startProcess();
  let most = 0;
  for (let minute = 0; minute < 60; minute++) {
    await use(1, pacer);
    most = Math.max(most, learned()?.perMinute ?? 0);
  }
  expect(most).toBeGreaterThan(40);
  expect(source.accepted.filter((at) => at > clock.now() - 10 * MINUTE_MS).length).toBeGreaterThan(0.7 * 10 * 50);
});

it('a process whose requests have all been refused learns nothing from that', async () => {
  const { source, use, learned } = scene({ rate: { requests: 0, windowMs: MINUTE_MS } });
  await use(10);
  expect(source.refused.length).toBeGreaterThan(9);
  expect(learned()).toBeNull();
});

it.each([0, 20, 980])('a refusal measures the last second, %s ms after one began', async (offsetMs) => {
  const { clock, startProcess, learned } = scene();
  const pacer = startProcess();
  // 50 a second, for two seconds.
  await clock.sleep(1_000 - (clock.now() % 1_000) + offsetMs);
  for (let request = 0; request <= 100; request++) {
    await pacer.acquire(new AbortController().signal);
    pacer.succeeded();
    if (request < 100) await clock.sleep(20);
  }
  expect(clock.now() % 1_000).toBe(offsetMs);
  void pacer.heed({ code: 'SOURCE_RATE_LIMITED', retryAfterMs: 1_000 });
  const refusedAt = learned()?.refusedAt ?? 0;
  expect(refusedAt).toBeGreaterThanOrEqual(0.9 * 3_000);
  expect(refusedAt).toBeLessThanOrEqual(3_000);
});

it('a process knows no limit until the source refuses a request', async () => {
  const rate = { requests: Number.POSITIVE_INFINITY, windowMs: MINUTE_MS };
  const { source, use, learned } = scene({ rate });
  await use(1);
  expect(source.accepted.length).toBeGreaterThan((0.9 * CONCURRENCY * MINUTE_MS) / LATENCY_MS);
  expect(learned()).toBeNull();
});

it('a configured limit is not learned', async () => {
  const { source, use, learned } = scene({ configured: { requests: 100, windowMs: MINUTE_MS } });
  await use(3);
  expect(source.refused.length).toBeGreaterThan(0);
  expect(learned()).toBeNull();
});

it('several requests that are refused at once lower the rate once', async () => {
  const said: unknown[] = [];
  const { clock, startProcess, learned } = scene({ tell: ({ fields }) => said.push(fields) });
  const pacer = startProcess();
  for (let request = 0; request < 100; request++) await pacer.acquire(new AbortController().signal);
  pacer.succeeded();
  for (const retryAfterMs of [30_000, 30_000, 0]) void pacer.heed({ code: 'SOURCE_RATE_LIMITED', retryAfterMs });
  expect(learned()).toEqual({ refusedAt: 100, perMinute: 70 });
  const reason = 'it refused 100 requests a minute; 70 are made now';
  expect(said).toEqual([{ refusedPerMinute: 100, limitPerMinute: 70, reason }]);
  // A server that is in trouble says nothing about its limit.
  await clock.sleep(MINUTE_MS);
  void pacer.heed({ code: 'SOURCE_UNAVAILABLE', retryAfterMs: 30_000 });
  expect(learned()).toEqual({ refusedAt: 100, perMinute: 70 });
  // Nor does a source that has refused everything since.
  void pacer.heed({ code: 'SOURCE_RATE_LIMITED', retryAfterMs: 0 });
  expect(learned()).toEqual({ refusedAt: 100, perMinute: 70 });
});
