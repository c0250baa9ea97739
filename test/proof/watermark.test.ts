import { expect, it } from 'vitest';
import {
  clockPutBack,
  clockPutForward,
  deltaFrom,
  doubtAge,
  momentOf,
  sourceTimeOf,
} from '../../src/proof/watermark.ts';

const OVERLAP = 300_000;
const HOUR = 3_600_000;

it('the source time is the Date less the duration of the request', () => {
  expect(sourceTimeOf({ sourceTime: 100_000, requestedAt: 5_000, receivedAt: 5_700 })).toBe(99_300);
});

it('the source time is local time less five minutes without a Date', () => {
  expect(sourceTimeOf({ sourceTime: null, requestedAt: 1_000_000, receivedAt: 1_000_100 })).toBe(700_000);
});

const response = { sourceTime: 900_000, requestedAt: 500_000, receivedAt: 500_200, ageMs: 60_000 };

it('a response from a cache shows an earlier time, by both clocks', () => {
  expect(momentOf(response)).toBe(440_000);
  expect(sourceTimeOf(response)).toBe(839_800);
  expect(sourceTimeOf({ ...response, sourceTime: null, requestedAt: 1_000_000 })).toBe(640_000);
});

it('a response from a cache is doubtful if it is older than the overlap', () => {
  expect(doubtAge(response, 60_000)).toBeNull();
  expect(doubtAge(response, 59_999)).toEqual({ code: 'cached', said: 'a cache answered with a page from 60 s ago' });
  expect(doubtAge({}, 0)).toBeNull();
});

it('a delta starts before the watermark, and never before 1970', () => {
  expect(deltaFrom(1_000_000, OVERLAP)).toBe(700_000);
  expect(deltaFrom(1_000, OVERLAP)).toBe(0);
});

const seen = { source: 100 * HOUR, local: 50 * HOUR };

it('a clock that was put back is not reported if both clocks advanced equally', () => {
  const later = { source: 101 * HOUR, local: 51 * HOUR };
  expect(clockPutBack(seen, [later], OVERLAP)).toBeNull();
  expect(clockPutBack(seen, [{ ...later, source: later.source - 50_000 }], OVERLAP)).toBeNull();
  expect(clockPutBack(seen, [{ ...later, source: later.source + 24 * HOUR }], OVERLAP)).toBeNull();
});

it('a clock that was put back makes the delta start at the time it was put back to', () => {
  const later = { source: 99 * HOUR, local: 51 * HOUR };
  expect(clockPutBack(seen, [later], OVERLAP)).toBe(98 * HOUR - OVERLAP);
  const both = [later, { source: 99.5 * HOUR, local: 53 * HOUR }];
  expect(clockPutBack(seen, both, OVERLAP)).toBe(96.5 * HOUR - OVERLAP);
});

it('a clock that was put back is detected sooner if the overlap is small', () => {
  const later = { source: 101 * HOUR - 5_000, local: 51 * HOUR };
  expect(clockPutBack(seen, [later], 2_000)).toBe(100 * HOUR - 7_000);
});

it('a clock that was put forward tells the time it would show otherwise', () => {
  const later = { source: 103 * HOUR, local: 51 * HOUR };
  expect(clockPutForward([seen], later, OVERLAP)).toBe(101 * HOUR);
  expect(clockPutForward([seen], { ...later, source: 101 * HOUR + 50_000 }, OVERLAP)).toBeNull();
  expect(clockPutForward([seen], { ...later, source: 99 * HOUR }, OVERLAP)).toBeNull();
  expect(clockPutForward([], later, OVERLAP)).toBeNull();
});
