import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import type { Clock } from '../../src/base/clock.ts';
import type { Rate } from '../../src/pace/pace.ts';
import type { Pacer } from '../../src/pace/pacer.ts';
import { openStore } from '../../src/store/store.ts';
import { mirrorPacer } from '../../src/sync/shared-pace.ts';
import { temporaryDirectory } from '../support/mirror.ts';
import { createVirtualClock } from '../support/test-clocks.ts';

const MINUTE_MS = 60_000;
const LATENCY_MS = 50;
const MINUTES = 30;
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

async function use(pacer: Pacer, { ask }: ReturnType<typeof limitedSource>, clock: Clock, minutes: number) {
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

function openMirror() {
  const store = openStore(join(temporaryDirectory(), 'catalog.db'));
  onTestFinished(() => store.close());
  return store;
}

const LIMITS: readonly (readonly [string, Rate, boolean])[] = [
  ['50/min', { requests: 50, windowMs: MINUTE_MS }, true],
  ['3/s', { requests: 3, windowMs: 1_000 }, true],
  ['50/min without Retry-After', { requests: 50, windowMs: MINUTE_MS }, false],
];

it.each(LIMITS)(
  'a process learns a limit of %s, uses most of it and is seldom refused',
  async (_, rate, sendsRetryAfter) => {
    const clock = createVirtualClock();
    const store = openMirror();
    const source = limitedSource(rate, clock, sendsRetryAfter);
    const options = { config: { rateLimit: null }, clock, tell: () => {} };
    await use(mirrorPacer(options, store), source, clock, 5);
    const learnedFrom = { refused: source.refused.length, accepted: source.accepted.length };
    // A process that starts later begins with what the one before has learned.
    await use(mirrorPacer(options, store), source, clock, MINUTES);
    const perMinute = (rate.requests * MINUTE_MS) / rate.windowMs;
    const accepted = source.accepted.length - learnedFrom.accepted;
    const refusals = source.refused.length - learnedFrom.refused;
    expect(accepted).toBeGreaterThan(0.7 * MINUTES * perMinute);
    expect(refusals).toBeLessThan(0.02 * accepted + MINUTES);
  },
);

it('a learned limit is not lowered further while another program uses the quota up, and grows again afterwards', async () => {
  const clock = createVirtualClock();
  const store = openMirror();
  const outage = { from: clock.now() + 15 * MINUTE_MS, until: clock.now() + 45 * MINUTE_MS };
  const taken = (now: number): number => (now >= outage.from && now < outage.until ? 50 : 0);
  const source = limitedSource({ requests: 50, windowMs: MINUTE_MS }, clock, false, taken);
  const pacer = mirrorPacer({ config: { rateLimit: null }, clock, tell: () => {} }, store);
  await use(pacer, source, clock, 45);
  expect(source.refused.filter((at) => taken(at) > 0).length).toBeGreaterThan(500);
  expect(store.source.learnedRate()?.perMinute).toBeGreaterThanOrEqual(0.4 * 50);
  // It is not raised either by requests that were refused.
  expect(store.source.learnedRate()?.perMinute).toBeLessThan(60);
  const before = source.accepted.length;
  await use(pacer, source, clock, 30);
  expect(source.accepted.length - before).toBeGreaterThan(0.7 * 30 * 50);
});

it('a limit that was learned too low grows to the true one within an hour of use', async () => {
  const clock = createVirtualClock();
  const store = openMirror();
  store.source.learnRate(() => ({ refusedAt: 2, perMinute: 2 }));
  const source = limitedSource({ requests: 50, windowMs: MINUTE_MS }, clock, true);
  const pacer = mirrorPacer({ config: { rateLimit: null }, clock, tell: () => {} }, store);
  let most = 0;
  for (let minute = 0; minute < 60; minute++) {
    await use(pacer, source, clock, 1);
    most = Math.max(most, store.source.learnedRate()?.perMinute ?? 0);
  }
  expect(most).toBeGreaterThan(40);
  expect(source.accepted.filter((at) => at > clock.now() - 10 * MINUTE_MS).length).toBeGreaterThan(0.7 * 10 * 50);
});

it('a process whose requests have all been refused learns nothing from that', async () => {
  const clock = createVirtualClock();
  const store = openMirror();
  const source = limitedSource({ requests: 0, windowMs: MINUTE_MS }, clock, true);
  await use(mirrorPacer({ config: { rateLimit: null }, clock, tell: () => {} }, store), source, clock, 10);
  expect(source.refused.length).toBeGreaterThan(9);
  expect(store.source.learnedRate()).toBeNull();
});

it.each([0, 20, 980])('a refusal measures the last second, %s ms after one began', async (offsetMs) => {
  const clock = createVirtualClock();
  const store = openMirror();
  const pacer = mirrorPacer({ config: { rateLimit: null }, clock, tell: () => {} }, store);
  // 50 a second, for two seconds.
  await clock.sleep(1_000 - (clock.now() % 1_000) + offsetMs);
  for (let request = 0; request <= 100; request++) {
    await pacer.acquire(new AbortController().signal);
    pacer.succeeded();
    if (request < 100) await clock.sleep(20);
  }
  expect(clock.now() % 1_000).toBe(offsetMs);
  void pacer.heed({ code: 'SOURCE_RATE_LIMITED', retryAfterMs: 1_000 });
  const refusedAt = store.source.learnedRate()?.refusedAt ?? 0;
  expect(refusedAt).toBeGreaterThanOrEqual(0.9 * 3_000);
  expect(refusedAt).toBeLessThanOrEqual(3_000);
});

it('a process knows no limit until the source refuses a request', async () => {
  const clock = createVirtualClock();
  const store = openMirror();
  const source = limitedSource({ requests: Number.POSITIVE_INFINITY, windowMs: MINUTE_MS }, clock, true);
  await use(mirrorPacer({ config: { rateLimit: null }, clock, tell: () => {} }, store), source, clock, 1);
  expect(source.accepted.length).toBeGreaterThan((0.9 * CONCURRENCY * MINUTE_MS) / LATENCY_MS);
  expect(store.source.learnedRate()).toBeNull();
});

it('a configured limit is not learned', async () => {
  const clock = createVirtualClock();
  const store = openMirror();
  const config = { rateLimit: { requests: 100, windowMs: MINUTE_MS } };
  const source = limitedSource({ requests: 50, windowMs: MINUTE_MS }, clock, true);
  await use(mirrorPacer({ config, clock, tell: () => {} }, store), source, clock, 3);
  expect(source.refused.length).toBeGreaterThan(0);
  expect(store.source.learnedRate()).toBeNull();
});

it('several requests that are refused at once lower the rate once', async () => {
  const clock = createVirtualClock();
  const store = openMirror();
  const said: unknown[] = [];
  const pacer = mirrorPacer({ config: { rateLimit: null }, clock, tell: ({ fields }) => said.push(fields) }, store);
  for (let request = 0; request < 100; request++) await pacer.acquire(new AbortController().signal);
  pacer.succeeded();
  for (const retryAfterMs of [30_000, 30_000, 0]) void pacer.heed({ code: 'SOURCE_RATE_LIMITED', retryAfterMs });
  expect(store.source.learnedRate()).toEqual({ refusedAt: 100, perMinute: 70 });
  const reason = 'it refused 100 requests a minute; 70 are made now';
  expect(said).toEqual([{ refusedPerMinute: 100, limitPerMinute: 70, reason }]);
  // A server that is in trouble says nothing about its limit.
  await clock.sleep(MINUTE_MS);
  void pacer.heed({ code: 'SOURCE_UNAVAILABLE', retryAfterMs: 30_000 });
  expect(store.source.learnedRate()).toEqual({ refusedAt: 100, perMinute: 70 });
  // Nor does a source that has refused everything since.
  void pacer.heed({ code: 'SOURCE_RATE_LIMITED', retryAfterMs: 0 });
  expect(store.source.learnedRate()).toEqual({ refusedAt: 100, perMinute: 70 });
});
