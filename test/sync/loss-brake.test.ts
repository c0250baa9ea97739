import { join } from 'node:path';
import { startRawSource } from '@catchword/testing/raw-source';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import Database from 'better-sqlite3';
import { expect, it } from 'vitest';
import { problemText } from '../../src/report/problem-text.ts';
import { stateOf } from '../../src/state/mirror-state.ts';
import { problemsOf } from '../../src/state/problems.ts';
import { serve } from '../http/place.ts';
import { reading } from '../operate/daemon.ts';
import { runHere as cli } from '../support/in-process.ts';
import { load, type ToldRun } from '../support/load.ts';
import { settingsFor } from '../support/mirror.ts';
import { filled } from '../support/place.ts';

const WRONG = { CATCHWORD_CURRENCY: 'XXX' };

function problemsAt(db: string): string[] {
  const store = reading(db);
  const state = stateOf(store, Date.now(), {
    readyMaxAgeMs: Number.MAX_SAFE_INTEGER,
    minFreeBytes: null,
    behindLimitMs: 1_800_000,
  });
  const found = problemsOf(state).filter(({ topic }) => topic === 'unusual');
  return found.map((problem) => Object.values(problemText(problem, state, store)).join('. '));
}

it('a wrong currency, which empties the prices of the whole mirror, makes the run unusual everywhere', {
  tags: ['slow'],
}, async () => {
  const { db, settings, directory } = await filled({ items: 2_400, details: true });
  const printed = async (args: string[], more = {}) => await cli(args, { ...settings, ...more }, directory);
  const synced = await printed(['sync'], { ...WRONG, LOG_LEVEL: 'warn' });
  expect(synced.code).toBe(0);
  const title = 'is unusual: it emptied prices of 2,400 of 2,400 products, more than CATCHWORD_LOSS_LIMIT allows';
  const advice =
    'The mirror took the changes, because it is a copy. Check the source, and the settings that say what it sends, such as CATCHWORD_CURRENCY: docs/bad-night.md.';
  const lines = `\n  updated  100% of the products; emptied prices of 2,400 products\n  It ${title}. ${advice}\n`;
  expect(synced.stdout).toContain(lines);
  expect(synced.stderr).toMatch(/"code":"RUN_UNUSUAL","run":2,"seq":2401,"reason":"it emptied prices of \d+ of 2400 /);
  expect(synced.stderr.split('RUN_UNUSUAL')).toHaveLength(2);

  const unusual = { from: 2_401, field: 'prices', products: 2_400, living: 2_400 };
  const { runs } = reading(db);
  expect(runs.unusual(0)).toEqual({ run: 2, ...unusual });
  expect([runs.unusual(1)?.run, runs.unusual(2), runs.lastUnusual()]).toEqual([2, undefined, 2]);
  expect(problemsAt(db)).toEqual([`Run 2 ${title}. ${advice} See: npx catchword run 2`]);

  expect((await printed(['run', '2'])).stdout).toContain(lines);
  expect((await printed(['runs'])).stdout).toContain(`\nrun 2: note: It ${title}.\n`);
  // It would end the brake for prices.
  const wrongAdvice = 'CATCHWORD_IGNORE_FIELDS';
  for (const verb of ['run 2', 'status']) expect((await printed(verb.split(' '))).stdout).not.toContain(wrongAdvice);
  expect((await printed(['status'])).stdout).toMatch(new RegExp(`\nunusual +run 2 ${title}`));
  const [newest, first] = JSON.parse((await printed(['runs', '--json'])).stdout) as Record<string, unknown>[];
  const json = { unusual, emptied: { prices: 2_400 }, evidence: { updated_share: 1 } };
  expect([newest, first]).toMatchObject([json, { unusual: null, emptied: null, evidence: { updated_share: 0 } }]);
  const { web } = await serve(db);
  const get = async (path: string) => await (await fetch(`${web.url}${path}`)).text();
  expect(JSON.parse(await get('/api/runs'))).toMatchObject([json, { unusual: null }]);
  expect(await get('/runs/2')).toContain(`It ${title}. ${advice}`);
  expect(await get('/runs/2')).not.toContain(wrongAdvice);
  expect((await get('/runs')).match(/>complete, unusual</g)).toHaveLength(1);
  expect(await get('/')).toContain(`Run 2 ${title}`);
  expect(await get('/metrics')).toContain('\ncatchword_problems{topic="unusual"} 1\n');
  await web.stop();

  // What the run emptied comes back, which is not unusual.
  expect((await load(settings, 'full')).unusual).toBeNull();
  expect(problemsAt(db)).toEqual([]);
  expect(reading(db).runs.unusual(0)?.run).toBe(2);
});

/** A source whose products have a title and a price, and a mirror of it. */
async function scene(products: number, more: Record<string, string> = {}) {
  /** @param untitled so many have no title */
  const items = (untitled: number, value: number) =>
    Array.from({ length: products }, (_, at) => {
      const variants = [{ sku: 'a', prices: [{ currency: 'EUR', value }] }];
      return Buffer.from(JSON.stringify({ vbid: `P${at}`, title: at < untitled ? '' : 'T', variants }));
    });
  const source = await startRawSource(items(0, 1));
  const db = join(temporaryDirectory(), 'catalog.db');
  const settings = settingsFor(source.url, db, { LOG_LEVEL: 'silent', ...more });
  await load(settings, 'full');
  /** Makes the next run, after titles were emptied and the prices of all products were set. */
  async function night(untitled: number, value = 1): Promise<ToldRun> {
    source.items = items(untitled, value);
    return await load(settings, 'full');
  }
  return { db, night };
}

it('a night that changes every price is not unusual, and the run says that it updated every product', async () => {
  const { night } = await scene(300);
  expect(await night(0, 2)).toMatchObject({
    updated: 300,
    emptied: null,
    unusual: null,
    evidence: { updatedShare: 1 },
  });
});

it.each([
  ['99 of 1,000 products, less than the least limit,', 1_000, 99, {}, false],
  ['100 of 1,000 products, the least limit,', 1_000, 100, {}, false],
  ['101 of 1,000 products', 1_000, 101, {}, true],
  ['5% of 4,000 products', 4_000, 200, {}, false],
  ['more than 5% of 4,000 products', 4_000, 201, {}, true],
  ['more products than a limit without a share', 200, 3, { CATCHWORD_LOSS_LIMIT: '2' }, true],
  ['any product at a limit of 0', 200, 1, { CATCHWORD_LOSS_LIMIT: '0' }, true],
  ['every product without a limit', 200, 200, { CATCHWORD_LOSS_LIMIT: 'off' }, false],
  ['an ignored field', 200, 200, { CATCHWORD_LOSS_LIMIT: '0', CATCHWORD_IGNORE_FIELDS: '/title' }, false],
])('a run that empties %s is judged by the limit', async (_, products, count, more, isUnusual) => {
  const { db, night } = await scene(products, more);
  const run = await night(count);
  expect(run.emptied).toEqual('CATCHWORD_IGNORE_FIELDS' in more ? null : { title: count });
  expect(run.unusual !== null).toBe(isUnusual);
  expect(problemsAt(db)).toHaveLength(isUnusual ? 1 : 0);
});

it('an ignored field that is emptied with another one does not count', async () => {
  const { night } = await scene(120, { CATCHWORD_LOSS_LIMIT: '0', CATCHWORD_IGNORE_FIELDS: '/title' });
  expect(await night(120, 2)).toMatchObject({ updated: 120, emptied: null, unusual: null });
});

it('runs of a day that each empty a little are judged together, until one of them was unusual', async () => {
  const { db, night } = await scene(400, { CATCHWORD_LOSS_LIMIT: '100' });
  expect((await night(60)).unusual).toBeNull();
  expect((await night(100)).unusual).toBeNull();
  const third = await night(103);
  expect(third).toMatchObject({ emptied: { title: 3 }, unusual: { products: 103, earlier: 100, living: 400 } });
  expect(problemsAt(db)[0]).toContain(
    'is unusual: it and the runs of the 24 hours before emptied title of 103 of 400 products',
  );
  // Its sinks have waited for a decision, so what it counted does not count again.
  expect((await night(200)).unusual).toBeNull();
  expect((await night(205)).unusual).toMatchObject({ products: 102, earlier: 97 });
});

it('runs of an earlier day do not count for a run that empties a little', async () => {
  const { db, night } = await scene(400, { CATCHWORD_LOSS_LIMIT: '100' });
  await night(90);
  const sqlite = new Database(db);
  sqlite.exec('UPDATE runs SET started_at = started_at - 86400001');
  sqlite.close();
  expect((await night(180)).unusual).toBeNull();
  expect((await night(191)).unusual).toMatchObject({ products: 101, earlier: 90 });
});
