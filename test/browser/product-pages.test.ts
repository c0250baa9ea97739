// @module-tag slow

import { execute } from '@catchword/testing/sqlite';
import { describe, expect, it } from 'vitest';
import { serveFilled, serveHarness } from '../http/place.ts';
import { browserAvailable, useBrowser } from '../support/browser.ts';

const book = (vbid: string, title: string) => ({ vbid, body: JSON.stringify({ vbid, title }) });

describe.skipIf(!browserAvailable)('pages of products, changes and sinks', { tags: ['stores'] }, () => {
  const visit = useBrowser();

  it('links lead from a search to a product, to a former version and back', async () => {
    const { change, web } = await serveHarness();
    const vbid = 'a/b?#%2F é😀<b>';
    change([book(vbid, 'First title')]);
    change([book(vbid, '<img src=x onerror=alert(1)> second')]);
    const { page } = await visit();
    await page.goto(`${web.url}/products`);
    await page.getByLabel('Words to search for').fill('sec*');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.getByRole('link', { name: 'second' }).click();
    expect(await page.textContent('h1')).toBe('<img src=x onerror=alert(1)> second');
    await page.getByRole('link', { name: 'Earlier version' }).click();
    expect(await page.textContent('h1')).toBe('First title');
    expect(await page.textContent('.note')).toContain('right after change 1. It has changed since.');
    await page.goBack();
    expect(await page.textContent('h1')).toContain('second');
    await page.goBack();
    expect(await page.getByLabel('Words to search for').inputValue()).toBe('sec*');
  });

  it('a filter keeps what is chosen and typed while the list changes', async () => {
    const { change, web } = await serveHarness();
    change([book('a', 'First title')]);
    const { page } = await visit();
    await page.goto(`${web.url}/changes`);
    await page.getByLabel('What').selectOption('created');
    await page.getByLabel('Fields').fill('title');
    await page.getByRole('button', { name: 'Filter' }).focus();
    change([book('b', 'Second title')]);
    await page.getByText('Second title').waitFor();
    expect([await page.getByLabel('What').inputValue(), await page.getByLabel('Fields').inputValue()]).toEqual([
      'created',
      'title',
    ]);
  });

  it('a tab keeps a number that is a part of a title', async () => {
    const { db, web } = await serveFilled({ items: 1 });
    execute(db, "UPDATE products SET title = '(500) Days of Summer'");
    const { page } = await visit();
    await page.clock.install();
    await page.goto(`${web.url}/products`);
    await page.locator('main').getByRole('link').first().click();
    expect(await page.title()).toBe('(500) Days of Summer – catchword');
    execute(
      db,
      "INSERT INTO runs (id, kind, state, started_at, finished_at, selection) VALUES (99, 'full', 'held', 1, 2, '{}')",
    );
    await page.clock.runFor(61_000);
    await expect.poll(() => page.title()).toBe('(1) (500) Days of Summer – catchword');
  });
});
