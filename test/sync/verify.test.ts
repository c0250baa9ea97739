import { join } from 'node:path';
import { type Sandbox, startSandbox } from '@catchword/sandbox/sandbox-server';
import { startRawSource } from '@catchword/testing/raw-source';
import { execute } from '@catchword/testing/sqlite';
import { beforeEach, expect, it, onTestFinished } from 'vitest';
import { runHere as cli } from '../support/in-process.ts';
import { load } from '../support/load.ts';
import { catalogOf, expectExactLog, standIn } from '../support/mirror.ts';
import { filled } from '../support/place.ts';
import { rawPlace } from './raw-place.ts';

let sandbox: Sandbox;
let directory: string;
let db: string;
let settings: Record<string, string>;

beforeEach(async () => {
  ({ sandbox, directory, db, settings } = await filled({ items: 1_500, details: true }, { LOG_LEVEL: 'fatal' }));
  settings.LOG_LEVEL = '';
});

function lines(text: string): Record<string, unknown>[] {
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

it('verify finds no difference in a correct mirror, and counts changes of the next delta as drift', {
  tags: ['slow'],
}, async () => {
  expect(await cli(['verify'], settings, directory)).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(
      /^read 1,500 products from the source, proof sealed\n0 differences, 0 drifted/,
    ) as string,
  });
  sandbox.catalog.mutate({ create: 2, update: 3, remove: 4, seed: 1 });
  const { code, stdout } = await cli(['verify', '--json'], settings, directory);
  expect(code).toBe(0);
  const found = lines(stdout);
  expect(found.at(-1)).toMatchObject({ summary: { differences: 0, drifted: 9, proof: 'sealed' } });
  expect(found.filter(({ kind }) => kind === 'only-there')).toHaveLength(2);
  expect(found.filter(({ kind, drift }) => kind === 'differs' && drift === true)).toHaveLength(7);
  await load({ ...settings, LOG_LEVEL: 'fatal' }, 'delta');
  const after = lines((await cli(['verify', '--json'], settings, directory)).stdout);
  // Withdrawn products were announced and are not listed any more: the next full load removes them.
  expect(after.at(-1)).toMatchObject({ summary: { differences: 0 } });
});

it('verify prints every difference, and writes nothing', async () => {
  const [a, b, c] = [...catalogOf(db).keys()].sort();
  execute(
    db,
    `
      UPDATE products SET body = json_set(body, '$.title', 'Wrong') WHERE vbid = '${a}';
      DELETE FROM products WHERE vbid = '${b}'; UPDATE mirror SET living = living - 1;
      UPDATE products SET vbid = 'STRANGER', body = json_set(body, '$.vbid', 'STRANGER') WHERE vbid = '${c}'`,
  );
  const before = catalogOf(db);
  const { code, stdout } = await cli(['verify', '--json'], settings, directory);
  expect(code).toBe(3);
  expect(lines(stdout)).toEqual([
    { kind: 'differs', vbid: a, title: expect.any(String), fields: ['/title'], drift: false },
    { kind: 'only-there', vbid: b, title: expect.any(String), drift: false },
    { kind: 'only-there', vbid: c, title: expect.any(String), drift: false },
    { kind: 'only-here', vbid: 'STRANGER', title: expect.any(String), drift: false },
    {
      summary: { products: 1500, proof: 'sealed', reasons: [], differences: 4, drifted: 0, unproven: 0, rejected: [] },
    },
  ]);
  expect(catalogOf(db)).toEqual(before);
  const text = await cli(['verify'], settings, directory);
  expect(text.stdout).toMatch(/^DIFF {3}differs .*\/title$/m);
});

it('verify reads the source by itself: not as a held, an unfinished or a running load of the mirror would', async () => {
  const gone = await startSandbox({ items: 1_000, details: true });
  onTestFinished(() => gone.stop());
  standIn(db, gone.url);
  execute(
    db,
    `
      INSERT INTO runs (kind, state, selection, started_at) VALUES ('full', 'reading', '{}', ${Date.now()});
      UPDATE lease SET holder = 'another', expires_at = ${Date.now() + 60_000}`,
  );
  const before = catalogOf(db);
  const { code, stdout } = await cli(['verify', '--json'], { ...settings, CATCHWORD_BASE_URL: gone.url }, directory);
  expect(code).toBe(3);
  expect(lines(stdout).filter(({ kind }) => kind === 'only-here')).toHaveLength(500);
  expect(lines(stdout).at(-1)).toMatchObject({ summary: { differences: 500, proof: 'sealed' } });
  expect(catalogOf(db)).toEqual(before);
});

it('verify needs a filled mirror', async () => {
  const empty = { ...settings, CATCHWORD_DB: join(directory, 'none.db') };
  expect(await cli(['verify'], empty, directory)).toMatchObject({ code: 1, stdout: '' });
});

it('sync --dry-run shows what a run would do, and does nothing', async () => {
  sandbox.catalog.mutate({ create: 2, update: 3, remove: 4, seed: 1 });
  const before = catalogOf(db);
  const delta = await cli(['sync', '--dry-run', '--json'], settings, directory);
  expect(JSON.parse(delta.stdout)).toMatchObject({ dry_run: true, kind: 'delta', created: 2, updated: 7, removed: 0 });
  const removing = { ...settings, CATCHWORD_WITHDRAWN_AS: 'removed' };
  const gone = await cli(['sync', '--dry-run', '--json'], removing, directory);
  expect(JSON.parse(gone.stdout)).toMatchObject({ created: 2, updated: 3, removed: 4 });
  const full = await cli(['sync', '--full', '--dry-run'], settings, directory);
  expect(full).toMatchObject({ code: 2, stderr: expect.stringContaining('npx catchword verify') as string });
  expect(catalogOf(db)).toEqual(before);
  expect(expectExactLog(db)).toBe(1_500);
});

it('sync --dry-run of a first run shows every product as created, and leaves no file', async () => {
  const fresh = { ...settings, CATCHWORD_DB: join(directory, 'new', 'catalog.db') };
  const { code, stdout } = await cli(['sync', '--dry-run', '--json'], fresh, directory);
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ kind: 'full', created: 1_500, removed: 0, held: false });
  expect((await cli(['status'], fresh, directory)).code).toBe(1);
});

it('sync --dry-run shows what would be held', async () => {
  sandbox.catalog.mutate({ remove: 200, seed: 1 });
  const gone = await startSandbox({ items: 1_000, details: true });
  onTestFinished(() => gone.stop());
  // Another selection, so that the next run reads everything.
  const other = { ...settings, CATCHWORD_BASE_URL: gone.url, CATCHWORD_CURRENCY: 'USD' };
  standIn(db, gone.url);
  const { code, stdout } = await cli(['sync', '--dry-run', '--json'], other, directory);
  // As the run itself would exit.
  expect(code).toBe(5);
  expect(JSON.parse(stdout)).toMatchObject({ removed: 500, held: true, proof: 'sealed' });
});

it('doctor shows how the source behaves', async () => {
  const found = await cli(['doctor'], { ...settings, CATCHWORD_LOOKUP_PATH: '/v4/products/:vbid' }, directory);
  expect(found.code).toBe(0);
  expect(found.stdout).toMatch(/ok {5}page size {2}any size is honoured\n/);
  expect(found.stdout).toMatch(/ok {5}order {6}two reads of a page are the same/);
  expect(found.stdout).toMatch(/ok {5}lookup {5}finds what exists/);
});

it('doctor asks for deltas of the future, of long ago, and of the newest change that it knows', async () => {
  const doctor = async () => (await cli(['doctor'], settings, directory)).stdout;
  expect(await doctor()).toContain('none is of the future; 1,500 products since 2000; the mirror knows no change');
  sandbox.catalog.mutate({ create: 0, update: 3, remove: 0, seed: 1 });
  await load({ ...settings, LOG_LEVEL: 'fatal' }, 'delta');
  expect(await doctor()).toMatch(/ok {5}deltas {5}none is of the future; 1,500 products since 2000; \d+ since /);
});

it.each<[string, string, (from: number) => boolean]>([
  ['future', 'a delta from the day after tomorrow shows 3 products', () => true],
  ['past', 'a delta from the year 2000 is empty', () => false],
  ['last hour', 'is empty, but run 2 found a change since', (from) => from < Date.UTC(2001, 0)],
])('doctor notices deltas that are wrong about the %s', async (_when, said, isTold) => {
  const titled = (title: string) => ['A', 'B', 'C'].map((vbid) => Buffer.from(JSON.stringify({ vbid, title })));
  const source = await startRawSource(titled('old'));
  const asked = { ...settings, CATCHWORD_BASE_URL: source.url, CATCHWORD_DB: join(directory, 'other.db') };
  await load({ ...asked, LOG_LEVEL: 'fatal' }, 'full');
  source.items = titled('new');
  await load({ ...asked, LOG_LEVEL: 'fatal' }, 'full');
  source.instead = ({ searchParams }) => {
    const from = searchParams.get('from');
    source.changed = from !== null && isTold(Date.parse(from)) ? source.items : [];
    return null;
  };
  const { stdout } = await cli(['doctor'], asked, directory);
  expect(stdout).toContain('note   deltas ');
  expect(stdout).toContain(said);
});

it('doctor notices a source that ignores the page size, and a lookup that does not work', async () => {
  const odd = await startSandbox({ items: 100, maxPerPage: 10 });
  onTestFinished(() => odd.stop());
  const asked = { ...settings, CATCHWORD_BASE_URL: odd.url, CATCHWORD_LOOKUP_PATH: '/v4/titles/:vbid' };
  standIn(db, odd.url);
  const found = await cli(['doctor'], asked, directory);
  expect(found.code).toBe(1);
  expect(found.stdout).toMatch(/note {3}page size {2}asked for 14 and 7 a page, it answers 10 and 7/);
  expect(found.stdout).toMatch(/failed lookup {5}does not find \d+, which is listed/);
});

it.each([
  ['an item that is not JSON', '{"vbid":"A","title":NaN}', /^an item was rejected: not JSON .*, of the product A$/m],
  ['an item that hides where it ends', '{"vbid":"A","title":"a"b"}', /^the changes were not read whole: offset 0 /m],
])('verify concludes nothing from a delta with %s, and says why', async (_what, item, words) => {
  const { source, settings: own, directory: place, run } = await rawPlace(['{"vbid":"A"}', '{"vbid":"B"}']);
  await run();
  source.items = ['{"vbid":"A","title":"new"}', '{"vbid":"B"}'].map((text) => Buffer.from(text));
  source.changed = [Buffer.from(item)];
  const { code, stdout } = await cli(['verify'], own, place);
  expect([code, stdout]).toEqual([0, expect.stringMatching(words)]);
  expect(stdout).toMatch(/^1 product not seen, or different, which this reading cannot prove$/m);
});
