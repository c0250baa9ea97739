import { setTimeout as delay } from 'node:timers/promises';
import { execute } from '@catchword/testing/sqlite';
import { expect, it } from 'vitest';
import { catalogOf } from '../support/mirror.ts';
import { names, scripted } from './scripted-place.ts';

/* Histories in which a run is sealed over a product that it has not read, or moves its watermark past one. */

const HOUR = 3_600_000;

/** p119 moves behind p120. */
function touched(list: readonly string[]): string[] {
  return list.flatMap((vbid) => (vbid === 'p119' ? [] : vbid === 'p120' ? ['p120', 'p119'] : [vbid]));
}

it('a living product is kept although the clock of the source was put forward while the run settled', {
  tags: ['slow'],
}, async () => {
  const { shelf, fill, run, has, source } = await scripted(names(100), {
    CATCHWORD_MAX_PASSES: '1',
    CATCHWORD_DELTA_OVERLAP: '3s',
  });
  await fill();
  const created = names(20, 300);
  const hide = () => {
    while (shelf.list.indexOf('p120') < 20) shelf.list = [created.shift() ?? '', ...shelf.list];
  };
  const slip = () => shelf.erase(...shelf.list.slice(0, shelf.list.indexOf('p120') - 14));
  shelf.onList = (before) => {
    if (before === 9 || before === 11) hide();
    if (before === 1 || before === 10 || before === 12) slip();
  };
  let touchedAt = Number.POSITIVE_INFINITY;
  shelf.onDelta = (before, _page, from) => {
    // A second before the settling delta, p119 was touched, and moved behind p120; deltas tell it two seconds later.
    if (before === 2) {
      touchedAt = Date.now() - 1_000;
      shelf.list = touched(shelf.list);
      source.aheadMs = HOUR;
    }
    shelf.told = from <= touchedAt && Date.now() >= touchedAt + 2_000 ? ['p119'] : [];
  };
  expect(await run()).toMatchObject({ removed: 0 });
  expect(has('p120')).toBe(true);
});

it('a delta run reads what deltas told late after the clock of the source was put forward', async () => {
  const { shelf, fill, run, db, source } = await scripted(names(60), { CATCHWORD_DELTA_OVERLAP: '3s' });
  await fill(true);
  shelf.edit('p100', { edition: 2 });
  const editedAt = Date.now();
  shelf.onDelta = (_before, _page, from) => {
    shelf.told = from <= editedAt && Date.now() >= editedAt + 2_000 ? ['p100'] : [];
  };
  source.aheadMs = HOUR;
  await run('delta');
  await delay(2_500);
  await run('delta');
  expect(JSON.stringify(catalogOf(db).get('p100'))).toContain('edition');
});

it('a living product is kept although the clock of the source was put forward right before the run', {
  tags: ['slow'],
}, async () => {
  const { shelf, fill, run, has, source } = await scripted(names(100), {
    CATCHWORD_MAX_PASSES: '1',
    CATCHWORD_DELTA_OVERLAP: '3s',
  });
  await fill();
  source.aheadMs = HOUR;
  let touchedAt = Number.POSITIVE_INFINITY;
  shelf.onList = (before) => {
    // p119 was touched right before the clock was put forward.
    if (before === 0) touchedAt = Date.now() - 100;
    if (before !== 1) return;
    // The list shows it now: p119 moves behind p120, which slips into the first window.
    shelf.list = touched(shelf.list);
    shelf.erase(...names(5));
  };
  shelf.onDelta = (_before, _page, from) => {
    shelf.told = from <= touchedAt && Date.now() >= touchedAt + 2_000 ? ['p119'] : [];
  };
  expect(await run()).toMatchObject({ removed: 0 });
  expect(has('p120')).toBe(true);
});

it.each([
  ['', 0],
  [', although the run before had waited long for its first answer', 2 * HOUR],
])(
  'a second delta run right after the clock of the source was put forward lets the next one read late changes%s',
  async (_what, waitedMs) => {
    const { shelf, fill, run, db, source } = await scripted(names(60), { CATCHWORD_DELTA_OVERLAP: '30s' });
    await fill(true);
    execute(
      db,
      `UPDATE runs SET started_at = started_at - 60000 - ${waitedMs}, source_time = source_time - 60000,
       answered_at = answered_at - 60000;
     UPDATE mirror SET watermark = watermark - 60000, source_seen = source_seen - 60000, local_seen = local_seen - 60000`,
    );
    shelf.edit('p100', { edition: 2 });
    const editedAt = Date.now();
    source.aheadMs = HOUR;
    shelf.onDelta = (before, _page, from) => {
      shelf.told = from <= editedAt && before >= 2 ? ['p100'] : [];
    };
    await run('delta');
    await run('delta');
    await run('delta');
    expect(JSON.stringify(catalogOf(db).get('p100'))).toContain('edition');
  },
);
