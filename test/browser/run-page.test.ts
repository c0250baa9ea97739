import { describe, expect, it } from 'vitest';
import { browserAvailable, useBrowser } from '../support/browser.ts';
import { place } from '../support/place.ts';
import { startDaemonHere } from './scene.ts';

const timeout = 60_000;

describe.skipIf(!browserAvailable)('the page of a run', () => {
  const visit = useBrowser();

  it('the page shows all of a run that was watched, left, and opened again after its end', async () => {
    const { settings } = await place({ items: 3_000, latencyMs: 20, churnPerSecond: 0 });
    const url = await startDaemonHere({
      ...settings,
      CATCHWORD_PER_PAGE: '50',
      CATCHWORD_RATE_LIMIT: '20/s',
      CATCHWORD_DELTA_CRON: '*/2 * * * * *',
      CATCHWORD_FULL_CRON: '0 0 1 1 *',
    });
    const { page } = await visit();
    await page.goto(`${url}/runs/1`);
    await page.locator('.legend .unread').waitFor({ timeout });
    await page.locator('.legend .joined').waitFor({ timeout });
    await page.goto(`${url}/runs`);
    const delta = page.locator('#runs tr').filter({ hasText: 'delta' }).filter({ hasText: 'complete' });
    await delta.last().waitFor({ timeout });

    await page.goto(`${url}/runs/1`);
    await page.locator('#headline').getByText('sealed', { exact: true }).waitFor();
    const caption = (await page.locator('figcaption').first().textContent()) ?? '';
    const [, read, planned] = /(\d+) of (\d+) windows read/.exec(caption) ?? [];
    expect(Number(read)).toBeGreaterThan(50);
    expect(read).toBe(planned);
    expect(await page.locator('figure.windows').getAttribute('data-cells')).toMatch(/^w+$/);
    expect(await page.locator('.legend').textContent()).not.toContain('not read');
    expect(await page.locator('figure.pace').count()).toBe(0);

    await page.goto(`${url}/runs/2`);
    await page.locator('#proof').getByText('One response held everything that changed').waitFor();
    expect(await page.locator('canvas, input[type=range]').count()).toBe(0);
    expect(await page.locator('main').textContent()).not.toMatch(/preview|Each square|Each point/);
  });

  it('the page draws each mark of the legend in the colour of the picture', async () => {
    const { settings } = await place({ items: 3_000, latencyMs: 20, churnPerSecond: 0 });
    const url = await startDaemonHere({ ...settings, CATCHWORD_PER_PAGE: '50', CATCHWORD_RATE_LIMIT: '20/s' });
    const { page } = await visit();
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
