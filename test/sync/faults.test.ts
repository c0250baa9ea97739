import type { ErrorCode } from '@catchword/base/errors';
import { FAULT_KINDS, type FaultKind } from '@catchword/sandbox/http/faults';
import { startSandbox } from '@catchword/sandbox/sandbox-server';
import { describe, expect, it, onTestFinished } from 'vitest';
import { load } from '../support/load.ts';
import { catalogOf, expectExactLog, standIn, truthOf } from '../support/mirror.ts';
import { filled, place } from '../support/place.ts';

/** The error of a run in which every request meets a fault. */
const ENDS_WITH: Record<Exclude<FaultKind, 'short-page'>, ErrorCode> = {
  '5xx': 'SOURCE_UNAVAILABLE',
  reset: 'SOURCE_UNAVAILABLE',
  'truncated-gzip': 'SOURCE_BODY',
  'truncated-json': 'PAGE_BROKEN',
  html: 'SOURCE_NOT_SERVICE',
  'wrong-page': 'PAGE_INVALID',
  'slow-body': 'SOURCE_TIMEOUT',
  '429': 'SOURCE_RATE_LIMITED',
};

describe.each(FAULT_KINDS)('fault %s', (kind) => {
  // In other tests a response must not time out because the machine is busy.
  const timeout = kind === 'slow-body' ? '500ms' : '10s';
  const more = { CATCHWORD_PER_PAGE: '200', CATCHWORD_REQUEST_TIMEOUT: timeout, LOG_LEVEL: 'silent' };

  it('a load is complete and exact after the fault in some requests', async () => {
    const faults = [2, 3, 5, 8].map((nth) => `${kind}@${nth}`).join(',');
    const { sandbox, db, settings } = await place({ items: 2_000, faults, slowBodyMs: 1_500 }, more);
    const run = await load(settings, 'full');
    expect(run).toMatchObject({ state: 'complete', created: 2_000 });
    expect(run.requests).toBeGreaterThan(run.pages);
    expect(catalogOf(db)).toEqual(await truthOf(sandbox.url));
    expect(expectExactLog(db)).toBe(2_000);
  });

  if (!(kind in ENDS_WITH)) return;

  it('a load ends with a clear error and writes nothing after the fault in every request', async () => {
    const { db, settings } = await place({ items: 2_000, faults: `${kind}:1`, slowBodyMs: 1_500 }, more);
    await expect(load(settings, 'full')).rejects.toMatchObject({
      code: ENDS_WITH[kind as keyof typeof ENDS_WITH],
    });
    expect(catalogOf(db).size).toBe(0);
    expect(expectExactLog(db)).toBe(0);
  });
});

it('a source whose pages are all too short is used, but proves nothing', async () => {
  const { db, settings } = await filled({ items: 2_000 }, { CATCHWORD_PER_PAGE: '200', LOG_LEVEL: 'silent' });
  const short = await startSandbox({ items: 2_000, faults: 'short-page:1' });
  onTestFinished(() => short.stop());
  standIn(db, short.url);
  for (let night = 0; night < 3; night++) {
    const run = await load({ ...settings, CATCHWORD_BASE_URL: short.url }, 'full');
    expect(run).toMatchObject({ state: 'complete', proof: 'open', removed: 0 });
    expect(run.missing).toBeGreaterThan(0);
    expect(run.reasons.join('; ')).toMatch(/contradicts itself: page \d+ of \d+ has \d+ items/);
  }
  expect(catalogOf(db).size).toBe(2_000);
});
