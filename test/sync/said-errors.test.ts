import { errorsIn } from '@catchword/catalog/said-error';
import { expect, it } from 'vitest';
import { catalogOf, expectExactLog } from '../support/mirror.ts';
import { bodies, isDelta, numbered, rawPlace } from './raw-place.ts';

const EMPTY = '"num_items":0,"page":1,"per_page":1000,"total_pages":0,"items":[]';

it.each([
  ['errors', `{${EMPTY},"errors":["3 of 5 shards failed"]}`, '3 of 5 shards failed'],
  ['a flag', `{${EMPTY},"timed_out":true}`, 'timed_out: true'],
  ['a flag that is a number', `{${EMPTY},"success":0}`, 'success: 0'],
  ['a flag that is a text', `{${EMPTY},"success":"false"}`, 'success: false'],
  ['errors in its head', `{${EMPTY},"meta":{"Errors":["3 of 5 shards failed"]}}`, '3 of 5 shards failed'],
  ['a flag of a search', `{${EMPTY},"responseHeader":{"status":0,"partialResults":true}}`, 'partialResults: true'],
  ['failed parts', `{${EMPTY},"status":{"total":6,"failed":2}}`, 'status.failed: 2'],
  ['failed shards', `{${EMPTY},"_shards":{"total":5,"failed":3}}`, 'failed: 3'],
  ['a fault of a gateway', `{${EMPTY},"fault":{"faultstring":"timeout"}}`, 'timeout'],
  ['words alone', '{"message":"maintenance until 06:00"}', 'maintenance until 06:00'],
  ['a problem document', '{"title":"Unavailable","status":503}', 'status: 503; Unavailable'],
])(
  'a delta that is answered with 200 and %s moves nothing, and the change is read later',
  async (_what, body, words) => {
    const { source, db, run } = await rawPlace(bodies(['A', 'B']));
    await run();
    source.changed = bodies(['C']);
    source.instead = (asked) => (isDelta(asked) ? { status: 200, body } : null);
    await expect(run('delta')).rejects.toMatchObject({
      code: 'SOURCE_UNAVAILABLE',
      exitCode: 75,
      message: expect.stringContaining(words) as string,
    });
    source.instead = () => null;
    expect(await run('delta')).toMatchObject({ state: 'complete', created: 1 });
    expect([...catalogOf(db).keys()]).toEqual(['A', 'B', 'C']);
    expectExactLog(db);
  },
);

it.each([
  '"code":20000,"message":"success"',
  '"error":{"code":0,"message":""}',
  '"error":"none"',
  '"errorCode":0,"errorMessage":"success"',
  '"header":{"failed":2}',
  '"truncated":true',
  '"meta":{"has_errors":"no","failed":0,"status":"ok"}',
])('a page that also says %s is read', async (more) => {
  const { source, run } = await rawPlace([]);
  const body = `{"num_items":1,"page":1,"per_page":1000,"total_pages":1,"items":[{"vbid":"A"}],${more}}`;
  source.instead = () => ({ status: 200, body });
  expect(await run()).toMatchObject({ state: 'complete', created: 1 });
});

it('a list page that says that it is not whole is read again, and the list is proven', async () => {
  const { source, run } = await rawPlace(bodies(numbered(900)), { CATCHWORD_PER_PAGE: '100' });
  let left = 2;
  const body = '{"num_items":900,"page":3,"per_page":100,"total_pages":9,"items":[],"partial":true}';
  source.instead = ({ searchParams }) =>
    searchParams.get('page') === '3' && left-- > 0 ? { status: 200, body } : null;
  expect(await run()).toMatchObject({ state: 'complete', proof: 'sealed', created: 900 });
  expect(left).toBeLessThan(0);
});

it('a maintenance in the middle of a run that is answered with 200 is waited for like a 503, and the run goes on', async () => {
  const { source, run } = await rawPlace(bodies(numbered(900)), { CATCHWORD_PER_PAGE: '100' });
  const instead = { status: 200, body: '{"message":"maintenance until 06:00"}' };
  let pages = 0;
  source.instead = () => (++pages > 4 ? instead : null);
  await expect(run()).rejects.toMatchObject({
    code: 'SOURCE_UNAVAILABLE',
    exitCode: 75,
    message: expect.stringContaining('“maintenance until 06:00”') as string,
  });
  // Still so when it is resumed: it is not given up.
  await expect(run()).rejects.toMatchObject({ code: 'SOURCE_UNAVAILABLE' });
  source.instead = () => null;
  expect(await run()).toMatchObject({ id: 1, state: 'complete', proof: 'sealed', created: 900 });
});

it('an answer whose code is 429 is too many requests, whatever its status', async () => {
  for (const status of [200, 400, 503]) {
    const { source, run } = await rawPlace(bodies(['A']));
    source.instead = () => ({ status, body: '{"code":429,"message":"slow down"}' });
    await expect(run()).rejects.toMatchObject({ code: 'SOURCE_RATE_LIMITED', serviceCode: 429 });
  }
});

it('an answer that says that it is wrong is quoted without secrets', async () => {
  const { source, run } = await rawPlace(bodies(['A']), { CATCHWORD_API_KEY: 'a-secret-key' });
  const body = `{${EMPTY},"errors":["the key a-secret-key has no index"]}`;
  source.instead = () => ({ status: 200, body });
  await expect(run()).rejects.toMatchObject({
    message: expect.stringContaining('the key [secret] has no index') as string,
  });
});

it.each([
  ['a list of one page', '{"vbid":"B1","price":NaN}', 'full' as const],
  ['a delta of one page', '{"vbid":"B1","price":Infinity}', 'delta' as const],
])('an item that is not JSON in %s does not hide the others, and is named', async (_where, item, kind) => {
  const { source, db, run } = await rawPlace(bodies(['B0', 'B1', 'B2']));
  await run();
  const broken = [...bodies(['N1']), Buffer.from(item), ...bodies(['N2'])];
  if (kind === 'full') source.items = [...bodies(['B0']), ...broken, ...bodies(['B2'])];
  source.changed = broken;
  const ended = await run(kind);
  expect(ended).toMatchObject({ state: 'complete', created: 2, removed: 0 });
  expect(ended.rejected).toBeGreaterThan(0);
  expect([...catalogOf(db).keys()]).toEqual(['B0', 'B1', 'B2', 'N1', 'N2']);
});

it.each([
  ['a list', 'full' as const],
  ['a delta', 'delta' as const],
])('an item that hides where it ends is narrowed down to in the first page of %s', async (_where, kind) => {
  const { source, db, run } = await rawPlace(bodies(numbered(60)), { CATCHWORD_DELTA_OVERLAP: '0s' });
  const broken = bodies(numbered(60)).map((body, at) =>
    at === 17 ? Buffer.from('{"vbid":"B17","title":"a"b"}') : body,
  );
  if (kind === 'delta') await run();
  else source.items = broken;
  if (kind === 'delta') source.changed = [...broken.slice(10, 30), ...bodies(['N1'])];
  const ended = await run(kind);
  const offset = kind === 'full' ? 17 : 7;
  expect(ended.reasons).toContainEqual(
    expect.stringMatching(new RegExp(`^offset ${offset} cannot be read: the page is not JSON .*, of the product B17 `)),
  );
  expect(ended).toMatchObject({ state: 'complete', proof: 'open', created: kind === 'full' ? 59 : 1 });
  expect(catalogOf(db).has(kind === 'full' ? 'B18' : 'N1')).toBe(true);
  source.items = bodies(numbered(60));
  source.changed = [];
  expect(await run()).toMatchObject({ proof: 'sealed' });
});

it('an error of many spaces is judged as fast as another one', () => {
  const error = `${' '.repeat(5_000)}x`;
  // A search that goes back for each space would take a minute.
  expect(errorsIn({ error })).toEqual([error]);
  expect(errorsIn({ error: ' '.repeat(5_000), errors: [' none ', '\t0000-00-00T00:00:00Z\n'] })).toEqual([]);
});
