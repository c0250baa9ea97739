import { expect, it } from 'vitest';
import { count, localIso } from '../../src/report/text.ts';

it('numbers are those of Intl', () => {
  const number = new Intl.NumberFormat('en-US');
  const given = [0, 7, 999, 1000, 12_345, 999_999, 1_000_000, 1e15, -5, -1234, 0.5, 33.333_333, 1234.567_89, 0.1 + 0.2];
  expect(given.map(count)).toEqual(given.map((value) => number.format(value)));
});

it.each([0, 1_790_000_000_123, 951_782_399_999])('times are those of the zone (%i)', (ms) => {
  expect(localIso(ms, 'UTC')).toBe(localIso(ms, 'Etc/UTC'));
});
