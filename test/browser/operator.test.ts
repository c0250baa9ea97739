// @module-tag slow

import { serveHttp } from '@catchword/testing/listen';
import { execute } from '@catchword/testing/sqlite';
import axe from 'axe-core';
import { describe, expect, it } from 'vitest';
import { browserAvailable, useBrowser } from '../support/browser.ts';
import { load } from '../support/load.ts';
import { mutate } from '../support/mirror.ts';
import { filled } from '../support/place.ts';
import { shootAll, startDaemonHere, until } from './scene.ts';

/** A night after which four things wait for a person: a held run, a stale mirror, a sink that refuses, a silent channel. */
async function badNight(): Promise<string> {
  const here = await filled(
    { items: 600, churnPerSecond: 0, withdrawnForMs: 0 },
    { CATCHWORD_FULL_CRON: 'off', CATCHWORD_DELTA_CRON: 'off', CATCHWORD_READY_MAX_AGE: '1h' },
  );
  await mutate(here.sandbox.url, { remove: 250, update: 3, seed: 1 });
  expect(await load(here.settings, 'full')).toMatchObject({ state: 'held' });
  const day = 86_400_000;
  execute(
    here.db,
    `UPDATE runs SET started_at = started_at - ${day}, finished_at = finished_at - ${day}, source_time = source_time - ${day};
     UPDATE mirror SET watermark = watermark - ${day}, source_seen = source_seen - ${day}, local_seen = local_seen - ${day};
     INSERT INTO episodes (id, topic, message, began_at, ended_at) SELECT 1, 'runs', 'A run does not get through.' || char(10) ||
       'catchword tries again by itself.', finished_at - 7200000, finished_at - 3600000 FROM runs WHERE id = 2;
     INSERT INTO episodes (id, topic, message, began_at) SELECT 2, 'held', 'Run 2 holds 250 removals for an approval.' || char(10) ||
       'Nothing was removed. Look at them, then approve or reject the run: npx catchword run 2', finished_at FROM runs WHERE id = 2;
     INSERT INTO notices (channel, episode_id, phase, attempts, next_try_at, delivered_at, error)
       SELECT 'team', id, 'began', 1 + id, iif(id = 1, 1, 0), iif(id = 1, began_at, NULL), iif(id = 1, NULL, 'HTTP 410: this hook was deleted')
       FROM episodes`,
  );
  let refused = 0;
  const shop = await serveHttp((request, response) => {
    let body = '';
    request.on('data', (piece: Buffer) => {
      body += piece.toString();
    });
    request.on('end', () => {
      // The events of three products, each by itself.
      const isWrong = (JSON.parse(body) as unknown[]).length === 1 && refused < 3;
      if (isWrong) refused++;
      const isSplit = (JSON.parse(body) as unknown[]).length > 1 && refused < 3;
      response.writeHead(isWrong || isSplit ? 422 : 204).end();
    });
  });
  const url = await startDaemonHere({
    ...here.settings,
    CATCHWORD_SINK_SHOP: `webhook+${shop}/books#allow=private`,
    CATCHWORD_NOTIFY_TEAM: `webhook+${shop}/team#allow=private`,
  });
  await until(`${url}/api/sinks?state=live`, (text) => /"parked":3/.test(text));
  execute(
    here.db,
    `WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 280)
     INSERT INTO sink_points (sink_id, at, behind, delivered)
       SELECT sinks.id, unixepoch() * 1000 - (281 - n) * 300000, iif(n BETWEEN 90 AND 150, (n - 90) * 40, max(0, 2400 - (n - 150) * 60) * (n > 150)),
         iif(n < 150, n * 120, 18000 + (n - 150) * 300) FROM n, sinks`,
  );
  return url;
}

describe.skipIf(!browserAvailable)('an operator in the morning', { tags: ['stores'] }, () => {
  const visit = useBrowser();

  it('the overview names each trouble of a night, and leads to the page that explains it and takes the decision', async () => {
    const url = await badNight();
    const { page } = await visit({ viewport: { width: 390, height: 844 } });
    await page.goto(url);
    const main = (await page.locator('main').textContent()) ?? '';
    expect(await page.title()).toMatch(/^\(\d+\) Overview/);
    expect(main).toMatch(/Run 2 would remove 250 products\..*The sink shop refused changes\. 3 events are parked\./s);
    expect(main).toMatch(/The mirror is stale: .*Start a load.*Too old to rely on/s);
    expect(main).toContain('The channel team does not take its messages: 1 message given up.');

    await page.getByRole('link', { name: 'Look at them and decide' }).click();
    expect(await page.locator('main').textContent()).toMatch(/Approve.*Reject/s);
    await page.goto(url);
    await page.getByRole('link', { name: 'Look at it and decide' }).click();
    const sink = (await page.locator('#parked').textContent()) ?? '';
    expect(sink).toMatch(/the receiver answered 422.*"vbid":/s);
    expect(await page.locator('#curves svg').count()).toBe(2);
    await page.goto(url);
    await page.getByRole('link', { name: 'Problems of the last 90 days' }).click();
    expect(await page.locator('main').textContent()).toMatch(/given up after 3 tries: HTTP 410: this hook was deleted/);

    // What the hostile catalog of the other tests has none of: curves, bodies of parked events, messages.
    for (const path of ['/', '/sinks/shop', '/problems', '/system']) {
      await page.goto(`${url}${path}`);
      await page.evaluate(axe.source);
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        const serious = `axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
          violations.filter(({ impact }) => impact === 'serious' || impact === 'critical').map(({ id }) => id))`;
        expect({ path, colorScheme, found: await page.evaluate(serious) }).toEqual({ path, colorScheme, found: [] });
      }
      const tooWide = `[...document.querySelectorAll('main *')]
        .filter((one) => one.getBoundingClientRect().right > innerWidth && one.closest('.wide') === null).length`;
      expect({ path, tooWide: await page.evaluate(tooWide) }).toEqual({ path, tooWide: 0 });
    }
    await shootAll(page, url);
  });
});
