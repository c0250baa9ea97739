// @module-tag service

import { askedPause, parseRetryAfter, retryDelayMs } from '@catchword/base/backoff';
import type { Operation } from 'catchword-client/http/caller';
import { expect, it } from 'vitest';
import { connectTo, failure, hastyClock, NEVER, serve } from './connection.ts';

const delay = (error: object, attempt: number, attempts: number, random: number) =>
  retryDelayMs({ retryable: true, retryAfterMs: undefined, ...error }, attempt, attempts, () => random);

it('a retry waits longer each time, at most 30 s, with full jitter', () => {
  const longest = Array.from({ length: 9 }, (_, index) => delay({}, index + 1, 10, 1));
  expect(longest).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
  expect(delay({}, 3, 10, 0)).toBe(0);
});

it('a retry waits as long as the source asks, but not for hours, nor after the last attempt or a final error', () => {
  expect(delay({ retryAfterMs: 9_000 }, 1, 3, 1)).toBe(9_000);
  expect(delay({ retryAfterMs: 3_600_001 }, 1, 3, 1)).toBeNull();
  expect(delay({}, 3, 3, 1)).toBeNull();
  expect(delay({ retryable: false }, 1, 3, 1)).toBeNull();
});

const now = Date.UTC(2026, 10, 20, 2, 0, 0);

it.each([
  ['120', 120_000],
  [' 0 ', 0],
  ['Fri, 20 Nov 2026 02:00:30 GMT', 30_000],
  ['Friday, 20-Nov-26 02:00:30 GMT', 30_000],
  ['Fri, 20 Nov 2026 01:00:00 GMT', 0],
  ['2.0', 2_000],
  ['2.5', 2_500],
  [`${now / 1_000 + 3}`, 3_000],
  [`${now + 3_000}`, 3_000],
  [`${now / 1_000 - 3}`, 0],
  [`${now / 1_000 + 1.5}`, 1_500],
  ['Fri Nov 20 02:00:30 2026', 30_000],
  ['20 Nov 2026 02:00:30 GMT', 30_000],
  ['2026-11-20T02:00:30Z', 30_000],
  ['"30"', 30_000],
  ['.5s', 500],
  ['30 seconds', 30_000],
  ['2,5', 2_500],
  ['"0,25 s"', 250],
])('the header Retry-After %s asks for a pause of %i ms', (value, expected) => {
  expect(parseRetryAfter(value, now)).toEqual({ ms: expected, note: '' });
});

it.each(['9'.repeat(400), '86401', 'Mon, 20 Nov 2028 02:00:00 GMT'])(
  'the pause of Retry-After %s is cut to 24 h',
  (value) => {
    const pause = parseRetryAfter(value, now);
    expect(pause?.ms).toBe(86_400_000);
    expect(pause?.note).toMatch(/^it asked for a pause with Retry-After: .{5,41}; catchword waits at most 24 h$/);
  },
);

it.each([undefined, '', '-5', '1,500', '2,5,3', 'soon', '2026-11-20'])(
  'the header Retry-After %s is ignored',
  (value) => {
    expect(parseRetryAfter(value, now)).toBeUndefined();
  },
);

const seconds = now / 1_000;

it.each<[number, Record<string, string>, number | undefined]>([
  [429, { 'ratelimit-reset': '30' }, 30_000],
  [429, { 'ratelimit-reset': '30;w=60', 'ratelimit-remaining': '0' }, 30_000],
  [429, { 'x-ratelimit-reset': '1.5' }, 1_500],
  [429, { 'x-ratelimit-reset': `${seconds + 40}`, 'x-ratelimit-remaining': '0' }, 40_000],
  [429, { 'x-ratelimit-reset': `${now + 40_000}` }, 40_000],
  [429, { 'x-ratelimit-reset': `${seconds - 40}` }, 0],
  [429, { 'x-rate-limit-reset': `${seconds + 900}` }, 900_000],
  [429, { 'x-ratelimit-reset': `${seconds + 200_000}` }, 86_400_000],
  [429, { 'x-ratelimit-reset': '30', 'retry-after': '5' }, 5_000],
  [429, { 'x-ratelimit-reset': '30', 'retry-after': 'soon' }, 30_000],
  [429, { 'x-ratelimit-reset': '30', 'x-ratelimit-remaining': '12' }, undefined],
  [429, { 'x-ratelimit-reset': '100000' }, undefined],
  [429, { 'x-ratelimit-reset': '-5' }, undefined],
  [429, { 'x-ratelimit-reset': 'Fri, 20 Nov 2026 02:00:30 GMT' }, undefined],
  [429, { 'x-ratelimit-remaining': '0' }, undefined],
  [503, { 'x-ratelimit-reset': '30' }, undefined],
  [503, { 'x-ratelimit-reset': '30', 'x-ratelimit-remaining': '0' }, 30_000],
])('the headers of limits of a %i ask for a pause: %j', (status, headers, expected) => {
  expect(askedPause(headers, status, now)?.ms).toBe(expected);
});

it('the headers of limits are named if they ask for more than a day', () => {
  const pause = askedPause({ 'x-ratelimit-reset': `${seconds + 200_000}` }, 429, now);
  expect(pause?.note).toMatch(/^it asked for a pause with x-ratelimit-reset: \d+; catchword waits at most 24 h$/);
});

const json = { headers: { 'content-type': 'application/json' }, body: '{}' };
const operation = (repeatable: boolean): Operation<unknown> => ({
  method: 'POST',
  path: '/v3/x',
  format: 'json',
  token: false,
  repeatable,
  read: ({ value }) => value,
});

it('a call is retried after a failure only if it is repeatable', async () => {
  for (const repeatable of [true, false]) {
    const { url, asked } = await serve((_asked, index) => (index === 0 ? { status: 503 } : json));
    const answered = connectTo(url).caller.call(operation(repeatable), NEVER);
    if (repeatable) await answered;
    else expect(await failure(answered)).toMatchObject({ code: 'SOURCE_UNAVAILABLE' });
    expect(asked).toHaveLength(repeatable ? 2 : 1);
  }
});

it('a call is retried after a 429 when the service allows it', async () => {
  const tooEarly = { status: 429, headers: { 'retry-after': '1' } };
  const { url, asked } = await serve((_asked, index) => (index === 0 ? tooEarly : json));
  const clock = hastyClock();
  const startedAt = clock.now();
  await connectTo(url, {}, clock).caller.call(operation(false), NEVER);
  expect(asked).toHaveLength(2);
  expect(clock.now() - startedAt).toBeGreaterThanOrEqual(1_000);
});

it('a call fails at once, as do later calls, if the service asks for a pause of hours', async () => {
  const { url, asked } = await serve(() => ({ status: 429, headers: { 'retry-after': '86400' } }));
  const { caller } = connectTo(url);
  for (let calls = 0; calls < 3; calls++) {
    const error = await failure(caller.call(operation(true), NEVER));
    expect(error).toMatchObject({ code: 'SOURCE_RATE_LIMITED', retryAfterMs: expect.any(Number) as number });
    expect(error.hint).toMatch(/\.$/);
  }
  expect(asked).toHaveLength(1);
});

it('a call is sent at most five times', async () => {
  const { url, asked } = await serve(() => ({ status: 503 }));
  await failure(connectTo(url).caller.call(operation(true), NEVER));
  expect(asked).toHaveLength(5);
});
