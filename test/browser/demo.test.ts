// @module-tag slow
import { PassThrough } from 'node:stream';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { describe, expect, it, onTestFinished } from 'vitest';
import { stay } from '../../src/cli/commands/demo/demo-stay.ts';
import { browserAvailable, useBrowser } from '../support/browser.ts';
import { contextWith } from '../support/in-process.ts';
import { shoot } from './scene.ts';

/** Starts the demo in this process, until the test ends. @returns the address that it prints */
async function startDemo(items: number): Promise<string> {
  const stopping = new AbortController();
  const stdout = new PassThrough();
  const directory = temporaryDirectory();
  const running = stay(contextWith({ stdout, signal: stopping.signal }), {
    directory,
    port: 0,
    items,
    // Also on a machine that reads slowly, few enough for each seam to close.
    changesPerSecond: 0.5,
  });
  onTestFinished(async () => {
    stopping.abort();
    await running;
  });
  let text = '';
  for await (const chunk of stdout) {
    text += String(chunk);
    const [, address] = /^Open (\S+)\/$/m.exec(text) ?? [];
    if (address !== undefined) return address;
  }
  throw new Error('the demo prints no address');
}

describe.skipIf(!browserAvailable)('the demo that stays', { tags: ['stores'] }, () => {
  const visit = useBrowser();

  it('the demo shows a load from its start until it is sealed, in two windows, and a load that is cancelled', {
    timeout: 900_000,
  }, async () => {
    const viewport = { width: 1100, height: 1000 };
    // The windows are open before the load starts: on a busy machine it could end before them.
    const [{ page }, second] = [await visit({ viewport }), await visit({ viewport, colorScheme: 'dark' })];
    // The load takes 40 s at least, so that a busy browser sees its progress.
    const url = await startDemo(36_000);
    await page.goto(url);
    await page.getByRole('link', { name: 'Run 1' }).click();
    await second.page.goto(`${url}/runs`);
    /** @param absent if no progress is shown */
    const percent = async (absent = 0): Promise<number> => {
      const [shown] = await page.locator('.progress').allTextContents();
      return shown === undefined ? absent : Number(/\((\d+)%\)/.exec(shown)?.[1] ?? 0);
    };
    const timeout = 240_000;
    const loaded = async (): Promise<number> => {
      // A page that took long to render is updated seldom.
      await page.reload();
      return await percent();
    };
    await expect.poll(loaded, { timeout }).toBeGreaterThan(20);
    // The picture is drawn, not only described.
    expect(await page.locator('figure canvas').count()).toBeGreaterThan(0);
    // On a busy machine the load may end between two looks.
    await expect.poll(() => percent(100), { timeout }).toBeGreaterThan(55);
    await shoot(page, 'run');
    await page.evaluate('window.before = true');

    await page.locator('#headline').getByText('sealed', { exact: true }).waitFor({ timeout });
    await second.page.locator('#runs table').getByText('sealed', { exact: true }).waitFor({ timeout });
    expect(await page.evaluate('window.before')).toBe(true);
    await page.goto(page.url());
    await page.getByText('so nothing could slip between two pages').waitFor();
    await shoot(page, 'sealed');

    await page.goto(`${url}/products?q=history`);
    await page.locator('tbody a').first().click();
    await page.getByRole('heading', { name: 'History', exact: true }).waitFor();
    await page.goBack();
    expect(await page.getByRole('searchbox').inputValue()).toBe('history');
    await page.goForward();
    await page.getByRole('heading', { name: 'History', exact: true }).waitFor();

    await page.goto(`${url}/runs`);
    await page.locator('summary', { hasText: 'Start a full load…' }).click();
    await page.getByRole('button', { name: 'Start a full load' }).click();
    const row = page.locator('#runs tr').filter({ hasText: 'full' }).filter({ hasText: 'reading' });
    const started = async (): Promise<number> => {
      await page.goto(`${url}/runs`);
      return await row.count();
    };
    await expect.poll(started, { timeout }).toBe(1);
    await row.getByRole('link').click();
    await page.locator('summary', { hasText: 'Cancel this run…' }).click();
    await page.getByRole('button', { name: 'Cancel this run' }).click();
    await page.locator('#headline').getByText('cancelled').first().waitFor();
  });
});
