// @module-tag slow

import { redisAvailable } from '@catchword/testing/redis';
import { expect, it, onTestFinished } from 'vitest';
import { createMachineClock } from '../life/clock.ts';
import { faketimeLibrary } from '../life/tools.ts';
import { catalogOf, expectExactLog, truthOf } from '../support/mirror.ts';
import { hostsAvailable } from './network.ts';
import { openScene } from './scene.ts';

const PAGES = 40;
const PER_PAGE = 50;
/** The list takes 20 seconds, so that all take part in reading it. */
const SLOW = { CATCHWORD_RATE_LIMIT: '2/s' };

async function openHosts(more: Record<string, string> = {}) {
  const settings = { CATCHWORD_PER_PAGE: String(PER_PAGE), ...more };
  const scene = await openScene({ sandbox: { items: PAGES * PER_PAGE, latencyMs: 100 }, settings });
  onTestFinished(scene.close);
  return scene;
}

it.skipIf(!hostsAvailable || !redisAvailable).each([1, 4])(
  'a keeper makes an exact mirror of pages that %i fetchers read on hosts of their own',
  { tags: ['stores'] },
  async (count) => {
    const scene = await openHosts({ CATCHWORD_CONCURRENCY: '1', ...(count > 1 && SLOW) });
    const hosts = Array.from({ length: count }, (_, index) => scene.host(`fetcher${index}`));
    const fetchers = hosts.map((host) => scene.startRole(host, 'fetcher'));
    await Promise.all(fetchers.map((fetcher) => fetcher.shows('"msg":"started"')));
    const keeper = scene.startRole(scene.keeperHost, 'keeper');
    await keeper.shows('run complete');
    for (const { address } of hosts) await scene.service.shows(`asked by ${address}\n`);
    for (const role of [keeper, ...fetchers]) expect(await role.stop()).toMatchObject({ code: 0 });
    expect(catalogOf(scene.db)).toEqual(await truthOf(scene.url));
    expect(expectExactLog(scene.db)).toBe(PAGES * PER_PAGE);
    // The mirror's host asks for no page.
    expect((await scene.service.stop()).stdout).not.toContain(`asked by ${scene.keeperHost.address}\n`);
  },
);

it.skipIf(!hostsAvailable || !redisAvailable || faketimeLibrary === undefined)(
  'a page is read in time although a fetcher whose clock was a day ahead put it off',
  { tags: ['stores'], timeout: 300_000 },
  async () => {
    const scene = await openHosts(SLOW);
    const clock = createMachineClock(scene.directory, 'ahead');
    clock.set(86_400_000);
    const ahead = scene.startRole(scene.host('ahead'), 'fetcher', clock.env);
    await ahead.shows('"msg":"started"');
    const keeper = scene.startRole(scene.keeperHost, 'keeper');
    await expect.poll(() => catalogOf(scene.db).size).toBeGreaterThan(0);
    const broken = JSON.stringify({ operation: 'GET /v4/products', status: 503, times: 20 });
    await fetch(`${scene.url}/_sandbox/answer`, { method: 'POST', body: broken });
    const retries = async () => (await ahead.shows('"msg":"retrying page"')).split('"msg":"retrying page"').length;
    await expect.poll(retries).toBeGreaterThan(10);
    await ahead.stop('SIGKILL');
    scene.startRole(scene.host('right'), 'fetcher');
    await keeper.shows('run complete');
    expect(catalogOf(scene.db)).toEqual(await truthOf(scene.url));
    expectExactLog(scene.db);
  },
);
