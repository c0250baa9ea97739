// @module-tag slow
import { describe, expect, it } from 'vitest';
import { browserAvailable, useBrowser } from '../support/browser.ts';
import { place } from '../support/place.ts';
import { startDaemonHere } from './scene.ts';

const timeout = 60_000;

describe.skipIf(!browserAvailable)('the page of a run', { tags: ['stores'] }, () => {
  const visit = useBrowser();

  it('the page draws each mark of the legend in the colour of the picture', async () => {
    const { page } = await visit();
    // The load lasts until the test ends.
    const { settings } = await place({ items: 30_000, latencyMs: 20, churnPerSecond: 0 });
    const url = await startDaemonHere({ ...settings, CATCHWORD_PER_PAGE: '50', CATCHWORD_RATE_LIMIT: '2/s' });
    await page.goto(`${url}/runs/1`);
    await page.locator('.legend .unread').waitFor({ timeout });
    const colour = (name: string): Promise<string> =>
      page.evaluate(`getComputedStyle(document.querySelector('.legend .${name}'), '::before').backgroundColor`);
    const unread = await colour('unread');
    expect(await colour('read')).not.toBe(unread);
    // As at the end of a run: its mark is of another colour than those of what was read.
    const before = await colour('read');
    await page.evaluate(`document.querySelector('figure.windows').dataset.sealed = ''`);
    expect(await colour('unread')).toBe(unread);
    expect(await colour('read')).not.toBe(before);
  });
});
