import { parseIsoTime } from '@catchword/base/iso-time';
import { expect, it } from 'vitest';

it.each([
  ['2026-11-20', '2026-11-20T00:00:00.000Z'],
  ['2026-11-20T02:00', '2026-11-20T02:00:00.000Z'],
  ['2026-11-20T02:00Z', '2026-11-20T02:00:00.000Z'],
  ['2026-11-20 02:00+05:30', '2026-11-19T20:30:00.000Z'],
  ['2026-11-20 02:00:30', '2026-11-20T02:00:30.000Z'],
  ['2026-11-20T02:00:00.125Z', '2026-11-20T02:00:00.125Z'],
  ['2026-11-20T02:00:00+05:30', '2026-11-19T20:30:00.000Z'],
])('parseIsoTime parses %s as %s in any time zone of the machine', (text, time) => {
  expect(parseIsoTime(text)).toBe(Date.parse(time));
});

it.each(['', 'yesterday', '2026', '2026-02-30', '2026-02-30T00:00:00Z', '2026-11-20T25:00:00Z', '2026-11-20 (noon)'])(
  'parseIsoTime rejects %j',
  (text) => {
    expect(parseIsoTime(text)).toBeNull();
  },
);
