// @module-tag slow
import { describe, expect, it } from 'vitest';
import { serveHarness } from '../http/place.ts';
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
});
