import { describe, expect, it } from 'vitest';
import { parseRetryAfter, retryDelayMs } from '../../src/backoff.ts';

describe('trying again', () => {
  it('waits longer from try to try, at most half a minute, with full jitter', () => {
    const error = { retryable: true, retryAfterMs: undefined };
    const longest = Array.from({ length: 9 }, (_, index) => retryDelayMs(error, index + 1, 10, () => 1));
    expect(longest).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
    expect(retryDelayMs(error, 3, 10, () => 0)).toBe(0);
  });

  it('never before the source allows it', () => {
    expect(retryDelayMs({ retryable: true, retryAfterMs: 9_000 }, 1, 3, () => 1)).toBe(9_000);
  });

  it('gives up after the last try, for what cannot get better, and when asked to wait for hours', () => {
    expect(retryDelayMs({ retryable: true, retryAfterMs: undefined }, 3, 3, () => 1)).toBeNull();
    expect(retryDelayMs({ retryable: false, retryAfterMs: undefined }, 1, 3, () => 1)).toBeNull();
    expect(retryDelayMs({ retryable: true, retryAfterMs: 3_600_001 }, 1, 3, () => 1)).toBeNull();
  });
});

describe('Retry-After', () => {
  const now = Date.UTC(2026, 10, 20, 2, 0, 0);

  it.each([
    ['120', 120_000],
    [' 0 ', 0],
    ['Fri, 20 Nov 2026 02:00:30 GMT', 30_000],
    ['Friday, 20-Nov-26 02:00:30 GMT', 30_000],
    ['Fri, 20 Nov 2026 01:00:00 GMT', 0],
    ['Fri Nov 20 02:00:30 2026', 30_000],
  ])('%s', (value, expected) => {
    expect(parseRetryAfter(value, now)).toEqual({ ms: expected, note: '' });
  });

  it.each(['9'.repeat(400), '86401', 'Mon, 20 Nov 2028 02:00:00 GMT'])('%s is believed for a day', (value) => {
    const pause = parseRetryAfter(value, now);
    expect(pause?.ms).toBe(86_400_000);
    expect(pause?.note).toMatch(/^it asked for a pause with Retry-After: .{5,41}; catchword waits at most 24 h$/);
  });

  it.each([undefined, '', '-5', '1.5', 'soon', '2026-11-20'])('%s says nothing', (value) => {
    expect(parseRetryAfter(value, now)).toBeUndefined();
  });
});
