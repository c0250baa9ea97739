import { describe, expect, it } from 'vitest';
import { writeUnder } from '../../src/store/schema/hold-lease.ts';
import { browserAvailable, useBrowser } from '../support/browser.ts';
import { recordedChange } from '../support/recorded-change.ts';
import { serveHarness } from '../web/place.ts';

const book = (vbid: string, title: string) => ({ vbid, body: JSON.stringify({ vbid, title }) });

describe.skipIf(!browserAvailable)('pages of products, changes and sinks', () => {
  const visit = useBrowser();

  it('lead from a search to a product, to a former version and back', async () => {
    const {
      change,
      web: { url },
    } = await serveHarness();
    const vbid = 'a/b?#%2F é😀<b>';
    change([book(vbid, 'First title')]);
    change([book(vbid, '<img src=x onerror=alert(1)> second')]);
    const { page } = await visit();
    await page.goto(`${url}/products`);
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

  it('show a new change at the top without a reload', async () => {
    const {
      change,
      web: { url },
    } = await serveHarness();
    change([book('P1', 'Old book')]);
    const { page } = await visit();
    await page.goto(`${url}/changes`);
    await page.getByText('live').waitFor();
    change([book('P2', 'New book <script>alert(1)</script>')]);
    await page.locator('tbody tr:first-child', { hasText: 'New book <script>' }).waitFor();
    expect(await page.locator('tbody tr').count()).toBe(2);
  });

  it('carry out every decision about a sink, and show why one was not possible', async () => {
    const {
      change,
      web: { url },
      store,
    } = await serveHarness();
    change([book('P1', 'One'), book('P2', 'Two'), book('P3', 'Three')]);
    const sink = () => store.sinks.get('shop');
    const id = () => sink()?.id ?? 0;
    writeUnder(store.relayLease, Date.now(), ({ sinks, changes }) => {
      sinks.configure({ name: 'shop', kind: 'webhook', address: 'https://shop.example', identity: 'i' });
      sinks.ack({ id: id(), generation: 1 }, { cursor: 3, delivered: 3, rate: 1, at: Date.now() });
      for (const change of changes.after(0, 3)) {
        const { seq, at } = change;
        sinks.park(id(), { seq, reason: 'HTTP 422', at, change: recordedChange(change) });
      }
    });
    const { page } = await visit();
    await page.goto(`${url}/sinks/shop`);
    /** Opens a decision, confirms it, and waits until its outcome is listed. */
    const decide = async (name: string, outcome: string, within = 'main') => {
      const action = page.locator(`${within} details.action`, { has: page.getByText(`${name}…`, { exact: true }) });
      await action.first().locator('summary').click();
      await action.first().getByRole('button').click();
      await page.locator('#decisions', { hasText: outcome }).waitFor();
    };
    await decide('Pause', 'shop is paused');
    expect(sink()?.state).toBe('paused');
    await decide('Resume', 'shop resumes after change 3');
    expect(sink()?.state).toBe('running');
    await decide('Skip', '1 event skipped', '#parked');
    expect(store.sinks.stateOf(id(), 1)).toBe('skipped');
    await decide('Skip all rejected events', '2 events skipped');
    expect(store.sinks.parkedCount(id())).toBe(0);
    await page.locator('#parked', { hasText: 'No event is parked.' }).waitFor();
    await page.getByText('Replay from a change…').click();
    await page.getByLabel('Number of the first change').fill('9');
    await page.getByRole('button', { name: 'Replay from there' }).click();
    await page.locator('#decisions', { hasText: 'shop has not had 9 yet' }).waitFor();
    expect(sink()?.cursor).toBe(3);
    await page.getByText('Replay from a change…').click();
    await page.getByLabel('Number of the first change').fill('2');
    await page.getByRole('button', { name: 'Replay from there' }).click();
    await page.locator('#decisions', { hasText: 'shop gets every change from 2 on' }).waitFor();
    expect(sink()?.cursor).toBe(1);
    await decide('Replay everything', 'shop gets every product as of change 3');
    expect(sink()?.cursor).toBe(0);
  });
});
