// @module-tag slow
import { join } from 'node:path';
import { execute } from '@catchword/testing/sqlite';
import { describe, expect, it } from 'vitest';
import { browserAvailable, useBrowser } from '../support/browser.ts';
import { load } from '../support/load.ts';
import { mutate } from '../support/mirror.ts';
import { filled } from '../support/place.ts';
import { shoot, startDaemonHere } from './scene.ts';

/** A daemon that feeds a sink, and whose mirror was filled 28 days ago, and had a run on each day since. */
async function daemonWithHistory() {
  const here = await filled(
    { items: 3_000, churnPerSecond: 0, withdrawnForMs: 0 },
    { CATCHWORD_FULL_CRON: 'off', CATCHWORD_DELTA_CRON: 'off' },
  );
  execute(
    here.db,
    `WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 27)
     INSERT INTO runs (id, kind, state, started_at, finished_at, selection, proof, items, created, updated, removed)
       SELECT n + 1, iif(n % 7 = 6, 'full', 'delta'), 'complete', finished_at - (28 - n) * 86400000 - 40000 - n * 7919 % 30000,
         finished_at - (28 - n) * 86400000, selection, iif(n % 7 = 6, 'sealed', NULL), 20, 3 + n * 31 % 9, 40 + n * 67 % 50, n * 13 % 6
       FROM runs, n WHERE id = 1;
     UPDATE runs SET started_at = started_at - 28 * 86400000, finished_at = finished_at - 28 * 86400000 WHERE id = 1`,
  );
  await mutate(here.sandbox.url, { remove: 250, update: 3, seed: 1 });
  expect(await load(here.settings, 'full')).toMatchObject({ id: 29, state: 'held' });
  const sink = { CATCHWORD_SINK_ARCHIVE: `jsonl:${join(here.directory, 'changes.jsonl')}` };
  return await startDaemonHere({ ...here.settings, ...sink });
}

describe.skipIf(!browserAvailable)('the overview in a browser', { tags: ['stores'] }, () => {
  const visit = useBrowser();

  it('the overview draws its charts from the table below them, which it then closes', async () => {
    const { page } = await visit({ viewport: { width: 1100, height: 1000 } });
    const url = await daemonWithHistory();
    await page.goto(url);
    await page.locator('#sinks').getByText('live').waitFor();
    await page.reload();
    await page.locator('figure.chart canvas').nth(4).waitFor();
    expect(await page.locator('figure.chart figcaption').allTextContents()).toEqual([
      'Products',
      'Changes a day, without the first load',
      'Greatest age of the mirror',
      'Longest runs',
      'Changes for archive',
    ]);
    expect(await page.locator('main').textContent()).toContain('Nothing else is known to be wrong.');
    await shoot(page, 'overview');
    expect(await page.locator('figure.chart').nth(1).textContent()).toMatch(/Changes a day.*Created.*Updated/);
    expect(await page.locator('details.figures').getAttribute('open')).toBeNull();
    await page.locator('details.figures summary').click();
    expect(await page.locator('details.figures tbody tr').count()).toBe(28);
  });

  it('the overview shows the figures of its charts in a table if scripts are off', async () => {
    const { page } = await visit({ javaScriptEnabled: false });
    await page.goto(await daemonWithHistory());
    expect(await page.locator('figure.chart').first().isVisible()).toBe(false);
    const [newest] = await page.locator('details.figures tbody tr').all();
    expect(await newest?.isVisible()).toBe(true);
    const cells = await newest?.locator('td').allTextContents();
    expect(cells?.slice(0, 5)).toEqual(['3,000', '0', '3', '0', '0']);
  });

  it('the page shows times in the zone of the reader on demand, keeps that while it is live, and remembers it', async () => {
    const url = await daemonWithHistory();
    const { page } = await visit({ timezoneId: 'America/New_York' });
    await page.goto(`${url}/runs`);
    const started = page.locator('#runs td time').first();
    const utc = (await started.textContent()) ?? '';
    expect(utc).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$/);
    await page.getByRole('button', { name: 'Times in my zone' }).click();
    const own = (await started.textContent()) ?? '';
    expect(own).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d E[SD]T$/);
    expect(Date.parse(own)).toBe(Date.parse(utc));

    await page.goto(url);
    await page.locator('summary', { hasText: 'Start a delta load…' }).click();
    await page.getByRole('button', { name: 'Start a delta load' }).click();
    await page.locator('#decisions').getByText('started').waitFor();
    expect(await page.locator('#decisions time').first().textContent()).toMatch(/ E[SD]T$/);
    await page.getByRole('button', { name: 'Times in my zone' }).click();
    expect(await page.locator('#decisions time').first().textContent()).toMatch(/ UTC$/);
  });
});
