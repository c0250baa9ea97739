import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { serve } from '../http/place.ts';
import { openedStore } from '../store/opened-store.ts';
import { runHere } from '../support/in-process.ts';
import { catalogOf, expectExactLog } from '../support/mirror.ts';
import { rawPlace } from './raw-place.ts';

const whole = (at: number, price = 1) =>
  Buffer.from(`{"vbid":"B${at}","title":"T${at}","publisher":"P","language":"en","price":${price}}`);
const BOOKS = Array.from({ length: 60 }, (_, at) => whole(at));
const item = (text: string) => [Buffer.from(text)];

/** A filled mirror of a list in several pages, so that full runs ask deltas. */
async function filled(more: Record<string, string> = {}) {
  const place = await rawPlace(BOOKS, { CATCHWORD_PER_PAGE: '20', CATCHWORD_DELTA_OVERLAP: '0s', ...more });
  await place.run();
  return place;
}

it('a delta that shows only changed members does not replace a product, in full runs, nor in deltas from then on', async () => {
  const { source, db, run } = await filled();
  source.items = [whole(0, 2), ...BOOKS.slice(1)];
  source.changed = item('{"vbid":"B0","price":2}');
  const ended = await run();
  expect(ended).toMatchObject({ state: 'complete', proof: 'open', updated: 1 });
  expect(ended.reasons).toContain('deltas show products without title, publisher, language: these stay as they were');
  expect(catalogOf(db).get('B0')).toBe(whole(0, 2).toString());
  // The list has not been read again: the product is stale, and the run says so.
  source.changed = item('{"vbid":"B1","price":3}');
  const delta = await run('delta');
  expect(delta).toMatchObject({ proof: 'open', updated: 0, rejected: 0, evidence: { inPart: { items: 1 } } });
  expect(catalogOf(db).get('B1')).toBe(whole(1).toString());
  source.items = [whole(0, 2), whole(1, 3), ...BOOKS.slice(2)];
  await run();
  expect(catalogOf(db).get('B1')).toBe(whole(1, 3).toString());
  // A delta in the form of the list is taken.
  source.changed = [whole(2, 4)];
  expect(await run('delta')).toMatchObject({ updated: 1, rejected: 0 });
  expectExactLog(db);
});

it.each([
  ['deleted', '"deleted":true'],
  ['status=gone', '"status":"gone"'],
])(
  'a delta that says that a product is deleted removes it with CATCHWORD_DELETED_FIELD=%s, and for good',
  async (setting, member) => {
    const { source, db, run } = await filled({ CATCHWORD_DELETED_FIELD: setting });
    source.changed = item(`{"vbid":"B0",${member}}`);
    expect(await run('delta')).toMatchObject({ state: 'complete', removed: 1, updated: 0, rejected: 0 });
    expect(await run('delta')).toMatchObject({ removed: 0, created: 0, restored: 0 });
    source.items = BOOKS.slice(1);
    expect(await run()).toMatchObject({ proof: 'sealed', removed: 0, restored: 0 });
    expect(catalogOf(db).has('B0')).toBe(false);
    expectExactLog(db);
  },
);

it('a delta that says of more products than the limit that they are deleted removes them, and runs undo restores them', async () => {
  const marks = { CATCHWORD_DELETED_FIELD: 'deleted', CATCHWORD_REMOVAL_LIMIT: '10' };
  const { source, db, run, settings, directory } = await filled(marks);
  source.changed = BOOKS.map((_, at) => Buffer.from(`{"vbid":"B${at}","deleted":true}`));
  const { id, ...ended } = await run('delta');
  expect(ended).toMatchObject({ state: 'complete', removed: 60 });
  source.changed = [];
  expect(await runHere(['runs', 'undo', String(id)], settings, directory)).toMatchObject({ code: 0 });
  expect(catalogOf(db).size).toBe(60);
  expectExactLog(db);
});

it('a delta that shows nothing of a product but its key changes nothing without a setting, and names the setting', async () => {
  const { source, directory, db, settings, run } = await filled();
  source.changed = item('{"vbid":"B0","deleted":true}');
  const ended = await run('delta');
  expect(ended).toMatchObject({ state: 'complete', proof: 'open', updated: 0, removed: 0 });
  expect((await runHere(['run', '2'], settings, directory)).stdout).toContain('set CATCHWORD_DELETED_FIELD');
  expect(catalogOf(db).get('B0')).toBe(whole(0).toString());
  // A product that is gone does not come back by it.
  source.items = BOOKS.slice(1);
  source.changed = [];
  expect(await run()).toMatchObject({ proof: 'sealed', removed: 1 });
  source.changed = item('{"vbid":"B0","deleted":true}');
  expect(await run('delta')).toMatchObject({ restored: 0, evidence: { inPart: { items: 1 } } });
});

it('a first delta that shows only changed members replaces no product', async () => {
  const { source, db, run } = await filled();
  source.changed = item('{"vbid":"B0","price":2}');
  const ended = await run('delta');
  expect(ended).toMatchObject({ proof: 'open', updated: 0 });
  expect(ended.reasons.join()).toContain('deltas show products without title, publisher, language');
  expect(catalogOf(db).get('B0')).toBe(whole(0).toString());
  // The next list shows whether the product has lost them.
  const short = '{"vbid":"B0","price":2}';
  source.items = [Buffer.from(short), ...BOOKS.slice(1)];
  await run();
  expect(catalogOf(db).get('B0')).toBe(short);
});

it('doctor names the members that deltas leave out of a product', async () => {
  const { source, settings, directory } = await filled();
  const none = '{"num_items":0,"page":1,"per_page":1,"total_pages":0,"items":[]}';
  source.instead = ({ searchParams }) =>
    Date.parse(searchParams.get('from') ?? '2000-01-01') > Date.now() ? { status: 200, body: none } : null;
  source.changed = [whole(3), Buffer.from('{"vbid":"B4","title":"T4","price":1}')];
  const { stdout } = await runHere(['doctor'], settings, directory);
  expect(stdout).toContain('deltas show B4 without publisher, language, which the list shows');
  // Deltas that ignore the time from which they ask.
  source.instead = () => null;
  expect((await runHere(['doctor'], settings, directory)).stdout).toContain(
    'from the day after tomorrow shows 2 products; deltas show B4 without publisher, language, which the list shows',
  );
  source.changed = [whole(3)];
  expect((await runHere(['doctor'], settings, directory)).stdout).not.toContain('without publisher');
});

it.each([
  [
    'not JSON',
    '{"vbid":"B3","price":NaN}',
    'note   items      1 item of the first page cannot be used: at offset 3, not JSON',
  ],
  ['without a key', '{"title":"T3"}', 'note   items      1 item of the first page cannot be used: at offset 3, '],
  [
    'of too many brackets',
    '{"vbid":"B3","price":}}}',
    'note   items      offset 3 cannot be read: the page is not JSON',
  ],
])('doctor says of an item that is %s what a run says, and that the rest can be read', async (_what, bad, text) => {
  const { settings, directory, run } = await rawPlace(BOOKS.map((body, at) => (at === 3 ? bad : body)));
  const { stdout, code } = await runHere(['doctor'], settings, directory);
  expect(stdout).toContain(text);
  expect(stdout).not.toContain('failed');
  expect(code).toBe(0);
  expect(await run()).toMatchObject({ state: 'complete', proof: 'open', created: 59 });
});

it('doctor does not judge the items of a first page that the source refuses', async () => {
  const { source, settings, directory } = await rawPlace(BOOKS);
  source.instead = ({ searchParams }) =>
    searchParams.get('per_page') === '1000' ? { status: 400, body: '{"errors":["at most 100"]}' } : null;
  const { stdout } = await runHere(['doctor'], settings, directory);
  expect(stdout).toContain('note   items      not looked at: the first page cannot be read');
  expect(stdout).not.toContain('only valid products');
});

it('a run keeps at most 1,000 items that deltas show in part, and shows some of them', { tags: ['slow'] }, async () => {
  const { source, db, settings, directory, run } = await rawPlace(Array.from({ length: 1_300 }, (_, at) => whole(at)));
  await run();
  source.changed = Array.from({ length: 1_300 }, (_, at) => Buffer.from(`{"vbid":"B${at}","price":9}`));
  const { id, rejected, evidence } = await run('delta');
  const items = evidence?.inPart?.items ?? 0;
  expect([rejected, items >= 1_300]).toEqual([0, true]);
  expect(openedStore(db).runs.rejected(5_000, { run: id })).toHaveLength(1_000);
  const { stdout } = await runHere(['run', String(id)], settings, directory);
  expect(stdout).toContain('the delta shows it without title, publisher, language');
  expect(stdout).toContain(`… of ${items.toLocaleString('en')}: see the SQL view rejected_items`);
  const { web } = await serve(db);
  const last = await (await fetch(`${web.url}/runs/${id}`)).text();
  expect(last).toContain(`50 of ${items.toLocaleString('en')} items`);
});

it('a delta that shows a product without one member that it had is taken', async () => {
  const { source, db, run } = await filled();
  const shorter = '{"vbid":"B0","title":"T0","publisher":"P","price":1}';
  source.changed = item(shorter);
  expect(await run('delta')).toMatchObject({ updated: 1, rejected: 0 });
  expect(catalogOf(db).get('B0')).toBe(shorter);
});

it('a product that a list says is deleted is not taken up, and one that is not deleted is', async () => {
  const { source, db, run } = await rawPlace(
    ['{"vbid":"A","deleted":false}', '{"vbid":"B","deleted":null}', '{"vbid":"C","deleted":"2026-01-01"}'],
    { CATCHWORD_DELETED_FIELD: 'deleted' },
  );
  expect(await run()).toMatchObject({ created: 2 });
  source.items = [Buffer.from('{"vbid":"A","deleted":true}'), ...source.items.slice(1)];
  expect(await run()).toMatchObject({ removed: 1 });
  expect([...catalogOf(db).keys()]).toEqual(['B']);
});

it('a member that CATCHWORD_DELETED_FIELD only names removes a product if it says yes or a time, and nothing else does', async () => {
  const no = [
    '"N"',
    '"no"',
    '"n"',
    '"off"',
    '"active"',
    '"0"',
    '0',
    '2',
    'false',
    'null',
    '""',
    '"0000-00-00"',
    '"1970-01-01T00:00:00Z"',
    '"9999-12-31"',
    '[1]',
    '{}',
  ];
  const yes = ['true', '1', '"1"', '"TRUE"', '"yes"', '"Y"', '"2026-01-01"', '"2026-01-01T00:00:00.000Z"'];
  const items = (words: readonly string[], name: string) =>
    words.map((word, at) => `{"vbid":"${name}${at}","deleted":${word}}`);
  const { db, run } = await rawPlace([...items(no, 'no'), ...items(yes, 'yes')], {
    CATCHWORD_DELETED_FIELD: 'deleted',
  });
  expect(await run()).toMatchObject({ proof: 'sealed', created: no.length, removed: 0 });
  expect([...catalogOf(db).keys()].every((vbid) => vbid.startsWith('no'))).toBe(true);
});

it('deltas that show only changed members let no run fail, and full runs move the watermark to their start', async () => {
  const { source, db, run } = await filled();
  const part = (at: number) => Buffer.from(`{"vbid":"B${at}","price":9}`);
  source.changed = Array.from({ length: 15 }, (_, at) => part(at));
  const store = openedStore(db);
  const before = store.watermark() ?? 0;
  expect(await run('delta')).toMatchObject({ state: 'complete', proof: 'open', updated: 0 });
  expect(store.watermark()).toBe(before);
  source.items = Array.from({ length: 60 }, (_, at) => whole(at, at < 15 ? 9 : 1));
  await delay(1_100);
  const full = await run();
  expect(full.reasons).toEqual(['deltas show products without title, publisher, language: these stay as they were']);
  expect(full).toMatchObject({ state: 'complete', proof: 'open', updated: 15 });
  expect(store.watermark()).toBeGreaterThan(before);
});

it('a member that deltas leave out is not missed any more once a delta shows it', async () => {
  const { source, db, run } = await filled();
  const without = (at: number, price: number) => `{"vbid":"B${at}","title":"T${at}","publisher":"P","price":${price}}`;
  source.changed = [without(0, 2), without(1, 2)].map((text) => Buffer.from(text));
  expect((await run('delta')).reasons).toEqual(['deltas show products without language: these stay as they were']);
  source.changed = item(without(2, 3));
  expect(await run('delta')).toMatchObject({ updated: 0, proof: 'open' });
  // The language of B2 is gone, as the same delta shows.
  source.changed = [without(2, 3), whole(3, 3).toString()].map((text) => Buffer.from(text));
  expect(await run('delta')).toMatchObject({ updated: 2 });
  source.changed = item(without(4, 3));
  expect(await run('delta')).toMatchObject({ updated: 1 });
  expect(catalogOf(db).get('B4')).toBe(without(4, 3));
});

it('products whose price is not reduced any more lose the member that says so, although no other product of the delta has it', async () => {
  const { source, db, run } = await filled();
  const reduced = (at: number) => `${whole(at, 1).toString().slice(0, -1)},"sale_price":1}`;
  source.changed = [0, 1].map((at) => Buffer.from(reduced(at)));
  await run('delta');
  expect(catalogOf(db).get('B1')).toBe(reduced(1));
  source.changed = [0, 1].map((at) => whole(at, 1));
  expect(await run('delta')).toMatchObject({ reasons: [], updated: 2 });
  expect(catalogOf(db).get('B1')).toBe(whole(1, 1).toString());
});
