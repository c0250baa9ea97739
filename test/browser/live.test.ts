// @module-tag slow
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { serve, serveFilled } from '../http/place.ts';
import { browserAvailable, useBrowser } from '../support/browser.ts';
import { load } from '../support/load.ts';

/** What a page may transfer before it is complete, bytes. */
const FIRST_VIEW_BYTES = 60_000;

describe.skipIf(!browserAvailable)('the page in a browser', { tags: ['stores'] }, () => {
  const visit = useBrowser();
  const statusOf = (page: Page, text: string) => page.getByRole('status').getByText(text, { exact: true });

  /** Opens the overview of a mirror with so many products. */
  async function opened(items: number, options: Parameters<typeof visit>[0] = {}) {
    const served = await serveFilled({ items, details: true });
    const visitor = await visit(options);
    await visitor.page.goto(served.web.url);
    return { ...served, ...visitor };
  }

  it('the page shows the first view after at most 60 kB', async () => {
    const { page, transferred } = await opened(3_000);
    expect(await page.textContent('h1')).toBe('Overview');
    expect(transferred()).toBeGreaterThan(1_000);
    expect(transferred()).toBeLessThan(FIRST_VIEW_BYTES);
  });

  it('the page shows what changes, without a reload, in two windows', async () => {
    const { sandbox, settings, web, page: first } = await opened(300);
    const { page: second } = await visit();
    await second.goto(web.url);
    for (const page of [first, second]) {
      await statusOf(page, 'live').waitFor();
      await page.getByText('300').first().waitFor();
      await page.evaluate('window.before = true');
    }
    sandbox.catalog.mutate({ create: 7, seed: 1 });
    await load(settings, 'delta');
    for (const page of [first, second]) {
      await page.getByText('307').first().waitFor();
      expect(await page.evaluate('window.before')).toBe(true);
    }
  });

  it('the page says that it is not connected while the server is away, and is live again after that', async () => {
    const { db, web, page, problems } = await opened(10);
    await statusOf(page, 'live').waitFor();
    await web.stop();
    await statusOf(page, 'not connected; this page may be out of date').waitFor();
    await serve(db, { port: Number(new URL(web.url).port) });
    await statusOf(page, 'live').waitFor();
    // The browser writes each connection that is refused to its console.
    expect(problems.filter((problem) => !problem.includes('net::ERR_'))).toEqual([]);
    problems.length = 0;
  });

  it('the page is live again after the back button', async () => {
    const { page } = await opened(10);
    await statusOf(page, 'live').waitFor();
    await page.goto('about:blank');
    await page.goBack();
    await statusOf(page, 'live').waitFor();
    expect(await page.textContent('h1')).toBe('Overview');
  });

  it('the page keeps what the reader has selected until the selection ends', async () => {
    const { sandbox, settings, page } = await opened(300);
    await statusOf(page, 'live').waitFor();
    await page.evaluate(`getSelection().selectAllChildren(document.querySelector('main'))`);
    const selected = await page.evaluate('getSelection().toString()');
    expect(selected).toContain('300');
    const session = await page.context().newCDPSession(page);
    await session.send('Network.enable');
    const updated = new Promise<void>((resolve) => {
      session.on('Network.eventSourceMessageReceived', ({ data }) => data.includes('307') && resolve());
    });
    sandbox.catalog.mutate({ create: 7, seed: 1 });
    await load(settings, 'delta');
    await updated;
    expect(await page.evaluate('getSelection().toString()')).toBe(selected);
    await page.evaluate('getSelection().removeAllRanges()');
    await page.getByText('307').first().waitFor();
  });

  it('the page can be read without JavaScript', async () => {
    const { page } = await opened(300, { javaScriptEnabled: false });
    expect(await page.getByText('300').count()).toBeGreaterThan(0);
    expect(await page.getByRole('navigation', { name: 'Pages' }).getByRole('link').count()).toBeGreaterThan(4);
  });

  it('the page is used with the keyboard: the skip link, then the pages in order, each with a visible focus', async () => {
    const { web, page } = await opened(10);
    const focused = async () => await page.evaluate<string>('document.activeElement.textContent.trim()');
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('Skip to content');
    expect(await page.getByText('Skip to content').boundingBox()).toMatchObject({ x: expect.any(Number) as number });
    const names: string[] = [];
    for (let presses = 0; presses < 4; presses++) {
      await page.keyboard.press('Tab');
      names.push(await focused());
      expect(await page.evaluate('getComputedStyle(document.activeElement).outlineStyle')).toBe('solid');
    }
    expect(names).toEqual(['catchword', 'Overview', 'Runs', 'Products']);
    await page.keyboard.press('Shift+Tab');
    await page.goto(web.url);
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    expect(await page.evaluate('document.activeElement.id')).toBe('main');
  });
});
