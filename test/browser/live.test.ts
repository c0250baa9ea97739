import { describe, expect, it } from 'vitest';
import { browserAvailable, useBrowser } from '../support/browser.ts';
import { load } from '../support/load.ts';
import { filled } from '../support/place.ts';
import { serve } from '../web/place.ts';

/** What a page may transfer before it is complete, bytes. */
const FIRST_VIEW_BYTES = 60_000;

describe.skipIf(!browserAvailable)('the page in a browser', () => {
  const visit = useBrowser();

  it('shows the first view after at most 60 kB', async () => {
    const { db } = await filled({ items: 3_000, details: true });
    const { web } = await serve(db);
    const { page, transferred } = await visit();
    await page.goto(web.url);
    expect(await page.textContent('h1')).toBe('Overview');
    expect(transferred()).toBeGreaterThan(1_000);
    expect(transferred()).toBeLessThan(FIRST_VIEW_BYTES);
  });

  it('shows what changes, without a reload, in two windows', async () => {
    const { db, sandbox, settings } = await filled({ items: 300, details: true });
    const { web } = await serve(db);
    const windows = [(await visit()).page, (await visit()).page];
    for (const page of windows) {
      await page.goto(web.url);
      await page.getByRole('status').getByText('live', { exact: true }).waitFor();
      await page.getByText('300').first().waitFor();
      await page.evaluate('window.before = true');
    }
    sandbox.catalog.mutate({ create: 7, seed: 1 });
    await load(settings, 'delta');
    for (const page of windows) {
      await page.getByText('307').first().waitFor();
      expect(await page.evaluate('window.before')).toBe(true);
    }
  });

  it('says that it is not connected while the server is away, and is live again after that', async () => {
    const { db } = await filled({ items: 10 });
    const first = await serve(db);
    const { port } = new URL(first.web.url);
    const { page, problems } = await visit();
    await page.goto(first.web.url);
    const status = page.getByRole('status');
    await status.getByText('live', { exact: true }).waitFor();
    await first.web.stop();
    await status.getByText('not connected; this page may be out of date').waitFor();
    await serve(db, { port: Number(port) });
    await status.getByText('live', { exact: true }).waitFor();
    // The browser writes each connection that is refused to its console.
    expect(problems.filter((problem) => !problem.includes('net::ERR_'))).toEqual([]);
    problems.length = 0;
  });

  it('is live again after the back button', async () => {
    const { db } = await filled({ items: 10 });
    const { web } = await serve(db);
    const { page } = await visit();
    await page.goto(web.url);
    const live = page.getByRole('status').getByText('live', { exact: true });
    await live.waitFor();
    await page.goto('about:blank');
    await page.goBack();
    await live.waitFor();
    expect(await page.textContent('h1')).toBe('Overview');
  });

  it('keeps what the reader has selected until the selection ends', async () => {
    const { db, sandbox, settings } = await filled({ items: 300 });
    const { web } = await serve(db);
    const { page } = await visit();
    await page.goto(web.url);
    await page.getByRole('status').getByText('live', { exact: true }).waitFor();
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

  it('says that the reader is signed out when the session is over', async () => {
    const { db } = await filled({ items: 10 });
    const { web } = await serve(db, { token: 'a token of this test' });
    const { page, problems } = await visit();
    await page.goto(`${web.url}/runs`);
    await page.getByLabel('Token').fill('a wrong token');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('alert').getByText('This token is wrong').waitFor();
    await page.getByLabel('Token').fill('a token of this test');
    await page.getByLabel('Your name').fill('Anna <b>');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Runs' }).waitFor();
    await page.getByText('Signed in as Anna <b>').waitFor();
    const status = page.getByRole('status');
    await status.getByText('live', { exact: true }).waitFor();
    await page.context().clearCookies();
    await page.evaluate(`dispatchEvent(new Event('pagehide')); dispatchEvent(new Event('pageshow'))`);
    await status.getByText('signed out; reload this page to sign in').waitFor();
    await page.reload();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    // The browser writes refusals to its console.
    expect(problems.filter((problem) => !/status of 401|Aborting the connection/.test(problem))).toEqual([]);
    problems.length = 0;
  });

  it('can be read without JavaScript', async () => {
    const { db } = await filled({ items: 300 });
    const { web } = await serve(db);
    const { page } = await visit({ javaScriptEnabled: false });
    await page.goto(web.url);
    expect(await page.getByText('300').count()).toBeGreaterThan(0);
    expect(await page.getByRole('navigation', { name: 'Pages' }).getByRole('link').count()).toBeGreaterThan(4);
  });

  it('is used with the keyboard: the skip link, then the pages in order, each with a visible focus', async () => {
    const { db } = await filled({ items: 10 });
    const { web } = await serve(db);
    const { page } = await visit();
    await page.goto(web.url);
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
