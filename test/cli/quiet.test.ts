// @module-tag slow
import { expect, it, onTestFinished } from 'vitest';
import { stateOf } from '../../src/state/mirror-state.ts';
import { problemsOf } from '../../src/state/problems.ts';
import { writeUnder } from '../../src/store/schema/lease.ts';
import { openStore } from '../../src/store/store.ts';
import { start } from '../support/cli.ts';
import { runHere, shiftedClock } from '../support/in-process.ts';
import { filled } from '../support/place.ts';

const HOUR = 3_600_000;

/** A filled mirror, and what `sync --quiet` prints for cron. */
async function scene(more: Record<string, string> = {}) {
  const here = await filled({ items: 60, withdrawnForMs: 0 }, { CATCHWORD_REMOVAL_LIMIT: '1', ...more });
  const sync = (settings: Record<string, string> = {}, clock = shiftedClock(0)) =>
    runHere(['sync', '--quiet'], { ...here.settings, ...settings }, here.directory, { clock });
  return { ...here, sync };
}

it('sync --quiet prints nothing after a usual run, and says which sink is behind the limit of the settings', async () => {
  const { db, sync, directory, settings } = await scene();
  expect(await sync()).toEqual({ code: 0, stdout: '', stderr: '' });
  const store = openStore(db);
  onTestFinished(() => store.close());
  const shop = { name: 'shop', kind: 'webhook', address: 'https://shop.example', identity: 'shop' };
  writeUnder(store.relayLease, Date.now(), ({ sinks }) => sinks.configure(shop));
  const anHourLater = shiftedClock(HOUR);
  expect(await sync({ CATCHWORD_BEHIND_LIMIT: '2h' }, anHourLater)).toEqual({ code: 0, stdout: '', stderr: '' });
  const behind = await sync({}, anHourLater);
  expect(behind).toMatchObject({ code: 1, stderr: '' });
  expect(behind.stdout).toMatch(/^run \d+: delta load complete.*\nSink shop is 60 min \d+ s behind\. /s);
  const loud = await runHere(['sync'], settings, directory, { clock: anHourLater });
  expect(loud.code).toBe(0);
});

it('sync --quiet prints no log, although the daemon with the same settings has one', async () => {
  const { directory, settings } = await scene({ LOG_LEVEL: 'info' });
  const { code, stdout, stderr } = await start(['sync', '--quiet'], settings, directory).ended;
  expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: '', stderr: '' });
});

it('sync --quiet prints a run that is held, with exit code 5', async () => {
  const { sandbox, directory, settings } = await scene();
  sandbox.catalog.mutate({ remove: 20, seed: 1 });
  const { code, stdout, stderr } = await runHere(['sync', '--full', '--quiet'], settings, directory);
  expect({ code, stderr }).toEqual({ code: 5, stderr: '' });
  expect(stdout).toContain('Run 2 holds 20 removals for an approval.');
});

it('a sink that is behind is notified after a third of the limit, and after 10 minutes at most', async () => {
  const { db } = await scene();
  const store = openStore(db);
  onTestFinished(() => store.close());
  const shop = { name: 'shop', kind: 'webhook', address: 'https://shop.example', identity: 'shop' };
  writeUnder(store.relayLease, Date.now(), ({ sinks }) => sinks.configure(shop));
  const problems = (behindLimitMs: number) => {
    const limits = { readyMaxAgeMs: 24 * HOUR, minFreeBytes: null, behindLimitMs, disk: () => ({ free: 1, size: 1 }) };
    return problemsOf(stateOf(store, Date.now() + HOUR, limits)).map(({ topic, begins, forMs }) => [
      topic,
      begins,
      forMs,
    ]);
  };
  expect(problems(6 * 60_000)).toEqual([['behind', true, 120_000]]);
  expect(problems(HOUR / 2)).toEqual([['behind', true, 600_000]]);
  expect(problems(HOUR * 1.5)).toEqual([['behind', false, 600_000]]);
  expect(problems(HOUR * 3)).toEqual([]);
});
