// @module-tag slow

import { subscribe } from '@catchword/base/telemetry';
import { expect, it, onTestFinished } from 'vitest';
import { load } from '../support/load.ts';
import { place } from '../support/place.ts';

it('a run that fails leaves no page in the queue, and its requests are counted by their error', async () => {
  const { settings } = await place({ items: 10 });
  const pages: number[] = [];
  const outcomes: string[] = [];
  const end = subscribe((measure) => {
    if (measure.of === 'queue') pages.push(measure.pages);
    if (measure.of === 'request') outcomes.push(measure.outcome);
  });
  onTestFinished(end);
  await expect(load({ ...settings, CATCHWORD_API_KEY: 'WRONG' }, 'full')).rejects.toMatchObject({
    code: 'SOURCE_AUTH',
  });
  expect(Math.max(...pages)).toBeGreaterThan(0);
  expect(pages.at(-1)).toBe(0);
  expect(new Set(outcomes)).toEqual(new Set(['SOURCE_AUTH']));
});
