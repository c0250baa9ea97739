import { parseHttpDate } from '@catchword/base/iso-time';
import { expect, it } from 'vitest';

const AT = Date.UTC(2026, 10, 20, 2, 0, 30);

it.each([
  'Fri, 20 Nov 2026 02:00:30 GMT',
  'Fri, 20 Nov 2026 02:00:30',
  'Fri Nov 20 02:00:30 2026',
  '20 Nov 2026 02:00:30',
  '2026-11-20T02:00:30Z',
  '2026-11-20T02:00:30',
  '2026-11-20 02:00:30',
  'Fri, 20 Nov 2026 04:00:30 +0200',
])('the date of a header is UTC unless it says otherwise: %s', (text) => {
  const zone = process.env.TZ;
  process.env.TZ = 'America/New_York';
  try {
    expect(parseHttpDate(text)).toBe(AT);
  } finally {
    if (zone === undefined) delete process.env.TZ;
    else process.env.TZ = zone;
  }
});

it.each(['', 'soon'])('the date of a header is not known: %s', (text) => {
  expect(parseHttpDate(text)).toBeNull();
});
