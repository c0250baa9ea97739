// @module-tag slow
import { buffer } from 'node:stream/consumers';
import { serveHttp } from '@catchword/testing/listen';
import { execute } from '@catchword/testing/sqlite';
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { browserAvailable, useBrowser } from '../support/browser.ts';
import { hostileDaemon } from './scene.ts';

/** Decides as a person does: opens the explanation, if there is one, and presses the button. */
async function decide(page: Page, label: string): Promise<void> {
  const details = page.locator('details.action', { has: page.locator('summary', { hasText: `${label}…` }) }).first();
  if ((await details.count()) === 0)
    return await page.getByRole('button', { name: label, exact: true }).first().click();
  await details.locator('summary').click();
  await details.getByRole('button').click();
}

/** Tabs until the element with that text has the focus. */
async function tabTo(page: Page, text: string): Promise<void> {
  for (let presses = 0; presses < 60; presses++) {
    await page.keyboard.press('Tab');
    if ((await page.evaluate('document.activeElement.textContent.trim()')) === text) return;
  }
  throw new Error(`the keyboard does not reach ${text}`);
}

/** The words of all decisions, the newest first. */
async function decisions(page: Page, url: string): Promise<string[]> {
  await page.goto(`${url}/actions`);
  const rows = await page.locator('#decisions tbody tr').all();
  return await Promise.all(rows.map(async (row) => ((await row.locator('td').nth(2).textContent()) ?? '').trim()));
}

describe.skipIf(!browserAvailable)('decisions in a browser', { tags: ['stores'] }, () => {
  const visit = useBrowser();

  it('a button starts runs, and approves, undoes and rejects removals, which another window shows at once', async () => {
    const { url } = await hostileDaemon();
    const [{ page }, other] = [await visit(), await visit()];
    await other.page.goto(`${url}/runs`);
    const rowOf = (run: number) => other.page.locator('#runs tr').filter({ hasText: `Run ${run}` });
    await rowOf(2).getByText('needs a decision').waitFor();

    await page.goto(`${url}/runs/2`);
    await decide(page, 'Approve the removals');
    await rowOf(2).getByText('20 removed').waitFor();
    await page.goto(`${url}/runs/2`);
    await decide(page, 'Undo its removals');
    await rowOf(2).getByText('20 restored').or(rowOf(3)).first().waitFor();

    await page.goto(`${url}/runs`);
    await decide(page, 'Start a delta load');
    await rowOf(3).getByText('delta', { exact: true }).waitFor();
    await rowOf(3).getByText('complete', { exact: true }).waitFor();
    await page.goto(`${url}/runs`);
    await decide(page, 'Start a full load');
    await rowOf(4).getByText('needs a decision').waitFor();

    await page.goto(`${url}/runs/4`);
    await tabTo(page, 'Reject the removals…');
    await page.keyboard.press('Enter');
    await tabTo(page, 'Reject the removals');
    await page.keyboard.press('Enter');
    await rowOf(4).getByText('needs a decision').waitFor({ state: 'detached' });
    await page.waitForURL(/\/runs\/4#decision-/);

    expect(await decisions(page, url)).toEqual([
      'reject the removals of run 4',
      'start a full run',
      'start a delta run',
      'undo the removals of run 2',
      'approve the removals of run 2',
    ]);
  });

  it('what is ticked stays ticked when another run waits, all of it is decided at once, and the tab counts problems', async () => {
    const { url, db } = await hostileDaemon();
    const { page } = await visit();
    await page.clock.install();
    await page.goto(`${url}/actions`);
    expect(await page.title()).toBe('(1) Decisions – catchword');
    const tick = (run: number) => page.getByLabel(new RegExp(`^Run ${run}:`));
    await tick(2).check();
    execute(
      db,
      "INSERT INTO runs (id, kind, state, started_at, finished_at, selection) VALUES (9, 'full', 'held', 1, 2, '{}')",
    );
    await page.clock.runFor(3_000);
    await tick(9).waitFor();
    expect([await tick(2).isChecked(), await tick(9).isChecked()]).toEqual([true, false]);
    await tick(9).check();
    execute(
      db,
      'UPDATE runs SET reasons = \'[{"code":"held","why":{"code":"empty"},"verdict":null}]\' WHERE id IN (2, 9)',
    );
    await page.clock.runFor(3_000);
    await page.getByText('the source lists no product at all').first().waitFor();
    expect([await tick(2).isChecked(), await tick(9).isChecked()]).toEqual([true, true]);
    await page.getByRole('button', { name: 'Reject the ticked runs' }).click();
    await page.waitForURL(/\/actions#decision-/);
    await page.locator('#several li').first().waitFor({ state: 'detached' });
    expect(await decisions(page, url)).toEqual(['reject the removals of run 9', 'reject the removals of run 2']);
    execute(db, "UPDATE runs SET state = 'held' WHERE id = 9");
    await page.clock.runFor(61_000);
    await expect.poll(() => page.title()).toBe('(1) Decisions – catchword');
    execute(db, "UPDATE runs SET state = 'complete' WHERE id = 9");
    await page.clock.runFor(61_000);
    await expect.poll(() => page.title()).toBe('Decisions – catchword');
  });

  it('a button pauses, resumes and replays a sink, and retries and skips what it rejected', async () => {
    const rejected = new Set(['100', '101', '102']);
    const seen: string[] = [];
    const receiver = await serveHttp((request, response) => {
      void buffer(request).then((body) => {
        const events = JSON.parse(body.toString()) as { subject: string }[];
        const isRejected = events.some(({ subject }) => rejected.has(subject));
        if (!isRejected) seen.push(...events.map(({ subject }) => subject));
        response.writeHead(isRejected ? 422 : 204).end();
      });
    });
    const hook = `webhook+${receiver}/#allow=private&batch=50`;
    const { url } = await hostileDaemon({ CATCHWORD_SINK_SHOP: hook });
    const { page } = await visit();
    const timesSeen = (vbid: string) => seen.filter((one) => one === vbid).length;
    const sink = async () => await page.goto(`${url}/sinks/shop`);
    const state = page.locator('#main section').first();
    const parked = async () => {
      await sink();
      return await page.getByText('rejected by the sink').count();
    };

    await expect.poll(parked).toBe(3);
    expect(timesSeen('99')).toBe(1);
    await decide(page, 'Skip');
    await expect.poll(parked).toBe(2);
    rejected.delete('101');
    rejected.delete('102');
    await decide(page, 'Retry parked events');
    await expect.poll(parked).toBe(0);
    await expect.poll(() => timesSeen('102')).toBe(1);

    await sink();
    await decide(page, 'Pause');
    await state.getByText('paused').first().waitFor();
    await decide(page, 'Resume');
    await state.getByText('live').first().waitFor();
    rejected.clear();
    await decide(page, 'Replay everything');
    await expect.poll(() => timesSeen('99')).toBe(2);

    await sink();
    const replay = page.locator('details', { hasText: 'Replay from a change…' });
    await replay.locator('summary').click();
    await replay.getByLabel('Number of the first change').fill('1');
    await replay.getByRole('button').click();
    // Every change: it was created and updated.
    await expect.poll(() => timesSeen('99')).toBe(4);

    rejected.add('200');
    await sink();
    await decide(page, 'Replay everything');
    await expect.poll(parked).toBe(1);
    await decide(page, 'Skip all rejected events');
    await expect.poll(parked).toBe(0);
    expect(await decisions(page, url)).toHaveLength(8);
  });
});
