// @module-tag slow

import { windowKey } from '@catchword/catalog/page-types';
import { createRandom } from '@catchword/sandbox/catalog/random';
import { expect, it } from 'vitest';
import { openedStore } from '../store/opened-store.ts';
import { run, start } from '../support/cli.ts';
import { catalogOf, expectExactLog, truthOf } from '../support/mirror.ts';
import { place } from '../support/place.ts';

const KILLS = process.env.CI === undefined ? 10 : 20;
const WINDOWS = 200;
const SMALL_PAGES = { CATCHWORD_PER_PAGE: '100', CATCHWORD_CONCURRENCY: '4' };

it(`a load resumes after ${KILLS} kills at random moments, and ends in the same state`, {
  timeout: 900_000,
}, async () => {
  const { sandbox, directory, db, settings } = await place({ items: 20_000, latencyMs: 20 }, SMALL_PAGES);
  const random = createRandom(11);
  let killedAtWork = 0;
  for (let killed = 0; killed < KILLS; ) {
    const before = sandbox.requests.length;
    const running = start(['sync', '--full'], settings, directory);
    // Some die while the program loads or creates the schema, most while they read and write pages.
    const asks = (): boolean => sandbox.requests.length > before || running.child.exitCode !== null;
    if (random() > 0.2) await expect.poll(asks, { interval: 5 }).toBe(true);
    const timer = setTimeout(() => running.child.kill('SIGKILL'), random() * 450);
    const { signal, code } = await running.ended;
    clearTimeout(timer);
    if (signal === 'SIGKILL') {
      killed++;
      if (sandbox.requests.length > before) killedAtWork++;
    } else {
      expect(code).toBe(0);
      sandbox.catalog.mutate({ create: 20, update: 300, seed: killed });
    }
  }
  // Otherwise the test would not show anything.
  expect(killedAtWork).toBeGreaterThan(KILLS / 2);
  const last = await run(['sync', '--full', '--json'], settings, directory);
  expect(last.stderr).toBe('');
  expect(last.code).toBe(0);

  expect(catalogOf(db)).toEqual(await truthOf(sandbox.url));
  expect(expectExactLog(db)).toBeGreaterThanOrEqual(20_000);
});

it('a load reads only the missing pages after a kill', async () => {
  const { sandbox, directory, db, settings } = await place({ items: 20_000, latencyMs: 10 }, SMALL_PAGES);
  const running = start(['sync', '--full'], settings, directory);
  const killed = setInterval(() => {
    if (sandbox.requests.length > WINDOWS / 2) running.child.kill('SIGKILL');
  }, 5);
  expect((await running.ended).signal).toBe('SIGKILL');
  clearInterval(killed);

  const done = openedStore(db).runs.checkpoints(1, 0).map(windowKey);
  expect(done.length).toBeGreaterThan(0);
  const before = sandbox.requests.length;
  const { code, stdout } = await run(['sync', '--full', '--json'], settings, directory);
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ id: 1, state: 'complete', created: 20_000 });
  const asked = sandbox.requests
    .slice(before)
    .map(({ path }) => new URL(path, sandbox.url).searchParams)
    .filter((query) => !query.has('from'))
    .map((query) => `${query.get('page')}x${query.get('per_page')}`);
  expect(asked.filter((window) => done.includes(window))).toEqual([]);
  expect(new Set([...asked, ...done]).size).toBeGreaterThan(WINDOWS);
  expectExactLog(db);
});
