import { dirname, join } from 'node:path';
import { startRawSource } from '@catchword/testing/raw-source';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it } from 'vitest';
import { problemText } from '../../src/report/problem-text.ts';
import { stateOf } from '../../src/state/mirror-state.ts';
import { problemsOf } from '../../src/state/problems.ts';
import { serve } from '../http/place.ts';
import { reading } from '../operate/daemon.ts';
import { runHere as cli } from '../support/in-process.ts';
import { load } from '../support/load.ts';
import { settingsFor } from '../support/mirror.ts';

const IGNORED = { CATCHWORD_IGNORE_FIELDS: '/seen,/variants/*/updated' };

/** Products of which all but the first `same` differ each night in two fields. */
function catalog(count: number, night: number, same = 0): Buffer[] {
  return Array.from({ length: count }, (_, at) => {
    const now = at < same ? 0 : night;
    const variants = `[{"sku":"a","updated":${now}},{"sku":"b","updated":${now}}]`;
    return Buffer.from(
      `{"vbid":"P${at}","title":"T","seen":${now},"price":{"eur":${at % 3 === 0 ? now : 0}},"variants":${variants}}`,
    );
  });
}

async function scene(count: number, more: Record<string, string> = {}) {
  const source = await startRawSource(catalog(count, 0));
  const db = join(temporaryDirectory(), 'catalog.db');
  const settings = settingsFor(source.url, db, { LOG_LEVEL: 'silent' });
  expect((await load({ ...settings, ...more }, 'full')).evidence?.commonChange).toBeUndefined();
  return { source, db, settings };
}

function topicsAt(db: string, nowMs: number) {
  const store = reading(db);
  const state = stateOf(store, nowMs, {
    readyMaxAgeMs: Number.MAX_SAFE_INTEGER,
    minFreeBytes: null,
    behindLimitMs: 1_800_000,
  });
  const found = problemsOf(state).filter(({ topic }) => topic === 'updates');
  return found.map((problem) => Object.values(problemText(problem, state, store)).join('. '));
}

it('reports say that nearly every product was updated, and which field to ignore, until a day has passed', async () => {
  const ignoring = { CATCHWORD_IGNORE_FIELDS: '/seen' };
  const { source, db, settings } = await scene(120, ignoring);
  source.items = catalog(120, 1, 10);
  const run = await load({ ...settings, ...ignoring }, 'full');
  expect(run).toMatchObject({ updated: 110, evidence: { commonChange: '/variants/*/updated' } });
  const said =
    'updated nearly every product: 110. The field /variants/*/updated changed most often. If its changes do not matter, add it to CATCHWORD_IGNORE_FIELDS.';
  expect(topicsAt(db, Date.now())).toEqual([`Run 2 ${said} See: npx catchword run 2`]);
  expect(topicsAt(db, Date.now() + 27 * 3_600_000)).toEqual([]);
  const printed = async (...args: string[]) => (await cli(args, settings, dirname(db))).stdout;
  expect(await printed('status')).toContain(`run 2 ${said}`);
  expect(await printed('run', '2')).toContain(said);
  const status = JSON.parse(await printed('status', '--json')) as Record<string, unknown>;
  expect(status.restless_run).toEqual({ run: 2, updated: 110, field: '/variants/*/updated' });
  expect(status.last_run).toMatchObject({ evidence: { common_change: '/variants/*/updated' } });
  const { web } = await serve(db);
  expect(await (await fetch(`${web.url}/runs/2`)).text()).toContain(`It ${said}`);
  expect(await (await fetch(`${web.url}/api/status`)).json()).toMatchObject({ restless_run: status.restless_run });
  await web.stop();
});

it('a full run says which settings have changed since the one before, in its reports, lists and pages', async () => {
  const { db, settings } = await scene(3);
  const changed = { ...settings, CATCHWORD_CURRENCY: 'EUR', CATCHWORD_INCLUDE_DETAILS: 'metadata' };
  await load({ ...changed, CATCHWORD_IGNORE_FIELDS: '/seen' }, 'delta');
  const changes =
    'CATCHWORD_INCLUDE_DETAILS changed from (none) to metadata; CATCHWORD_CURRENCY changed from (none) to EUR; CATCHWORD_IGNORE_FIELDS changed from (none) to /seen';
  const said = `It is the first full load since ${changes}. Products that differ only by that are updated, too.`;
  const printed = async (...args: string[]) => (await cli(args, settings, dirname(db))).stdout;
  expect(await printed('run', '2')).toContain(said);
  expect(await printed('runs')).toMatch(new RegExp(`\\nrun 2: note: ${said.replaceAll(/[().]/g, '\\$&')}\\n$`));
  expect(JSON.parse(await printed('runs', '--json'))[0].evidence.changed_settings).toBe(changes);
  // Until the next one: it has the same settings. A delta in between ignores fewer fields.
  await load(changed, 'delta');
  await load({ ...changed, CATCHWORD_IGNORE_FIELDS: '/seen' }, 'full');
  await load(changed, 'full');
  expect((await printed('runs')).match(/\nrun \d: .*/g)).toEqual([
    '\nrun 5: note: It is the first full load since CATCHWORD_IGNORE_FIELDS changed from /seen to (none). Products that differ only by that are updated, too.',
    `\nrun 2: note: ${said}`,
  ]);
  // Volatile fields are ignored, too, but by another setting.
  const other = await load(
    { ...changed, CATCHWORD_VOLATILE_FIELDS: '/url,/seen', CATCHWORD_IGNORE_FIELDS: '/seen' },
    'full',
  );
  expect(other.evidence?.changedSettings).toBe(
    'CATCHWORD_IGNORE_FIELDS changed from (none) to /seen; CATCHWORD_VOLATILE_FIELDS changed from (none) to /url,/seen',
  );
  const { web } = await serve(db);
  expect(await (await fetch(`${web.url}/runs/2`)).text()).toContain(said);
  expect(await (await fetch(`${web.url}/runs/4`)).text()).not.toContain('first full load');
  expect(await (await fetch(`${web.url}/api/runs`)).text()).toContain(`"changed_settings":"${changes}"`);
  await web.stop();
});

it('a run records no change to the elements that are ignored, and says nothing of the others', async () => {
  const { source, settings } = await scene(120);
  source.items = catalog(120, 1);
  const run = await load({ ...settings, ...IGNORED }, 'full');
  // A third have another price.
  expect(run.updated).toBe(40);
  expect(run.evidence?.commonChange).toBeUndefined();
});

it.each([
  ['fewer than nine of ten products were updated', 120, 20],
  ['the catalog is small', 99, 0],
])('a run says nothing of its updates if %s', async (_, count, same) => {
  const { source, settings } = await scene(count);
  source.items = catalog(count, 1, same);
  expect((await load(settings, 'full')).evidence?.commonChange).toBeUndefined();
});

it('a run that follows changed settings, or puts back what an unusual run emptied, is not a problem', {
  tags: ['slow'],
}, async () => {
  const { source, db, settings } = await scene(120);
  source.items = catalog(120, 1);
  await load({ ...settings, CATCHWORD_CURRENCY: 'EUR' }, 'full');
  expect(topicsAt(db, Date.now())).toEqual([]);
  const { stdout } = await cli(['run', '2'], settings, dirname(db));
  expect(stdout).toContain('It is the first full load since CATCHWORD_CURRENCY changed');
  expect(stdout).not.toContain('nearly every product');
  const priced = (value: string) =>
    Array.from({ length: 120 }, (_, at) =>
      Buffer.from(`{"vbid":"P${at}","title":"T","variants":[{"sku":"a","prices":[${value}]}]}`),
    );
  const price = (value: number) => `{"currency":"EUR","type":"list","value":${value}}`;
  const night = { ...settings, CATCHWORD_CURRENCY: 'EUR', CATCHWORD_LOSS_LIMIT: '10' };
  source.items = priced(price(1));
  await load(night, 'full');
  source.items = priced('');
  expect(await load(night, 'full')).toMatchObject({ id: 4, unusual: { field: 'prices', products: 120 } });
  source.items = priced(price(1));
  const back = await load(night, 'full');
  expect(back.evidence?.commonChange).toBe('/variants/*/prices');
  expect(topicsAt(db, Date.now() + 27 * 3_600_000)).toEqual([]);
  // The night before, not the run that puts the prices back.
  expect(topicsAt(db, Date.now())).toEqual([expect.stringMatching(/^Run 3 /)]);
  // The same change once more is one.
  source.items = priced(price(2));
  await load(night, 'full');
  const [problem = ''] = topicsAt(db, Date.now());
  expect(problem).toMatch(
    /^Run 6 updated nearly every product: 120\. The field .*price.* changed most often\. Ask the service/,
  );
  expect(problem).not.toContain('CATCHWORD_IGNORE_FIELDS');
});
