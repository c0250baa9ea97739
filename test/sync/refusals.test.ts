import { CatchwordError } from '@catchword/base/errors';
import type { RawSource } from '@catchword/testing/raw-source';
import { redisAvailable, startRedis } from '@catchword/testing/redis';
import { query } from '@catchword/testing/sqlite';
import { expect, it, onTestFinished } from 'vitest';
import { catalogOf } from '../support/mirror.ts';
import { bodies, isDelta, numbered, rawPlace } from './raw-place.ts';

const HTML = { 'content-type': 'text/html' };
const PROXY_PAGE = '<!doctype html><html><body>Back soon</body></html>';

/** A source of several pages, and a place for its mirror. */
const begin = (more: Record<string, string> = {}) =>
  rawPlace(bodies(numbered(900)), { CATCHWORD_PER_PAGE: '100', ...more });

/** Finds the requests for one page of the list. */
const listed = (page: number) => (asked: URL) => !isDelta(asked) && asked.searchParams.get('page') === `${page}`;

/** Refuses everything from this request on. */
function refuseFrom(source: RawSource, isFirst: (asked: URL) => boolean, status: number): void {
  let isRefusing = false;
  source.instead = (asked) => {
    isRefusing ||= isFirst(asked);
    return isRefusing ? { status } : null;
  };
}

async function errorOf(run: Promise<unknown>): Promise<CatchwordError> {
  const error = await run.catch((thrown: unknown) => thrown);
  if (!(error instanceof CatchwordError)) throw new Error(`not a CatchwordError: ${String(error)}`);
  return error;
}

function runsIn(db: string) {
  return query<{ state: string; error: string | null }>(db, 'SELECT state, error FROM runs ORDER BY id');
}

it.each([
  ['400', { status: 400 }],
  ['401', { status: 401 }],
  ['403 and the page of a firewall', { status: 403, headers: HTML, body: PROXY_PAGE }],
  ['403 and Retry-After', { status: 403, headers: { 'retry-after': '1' } }],
  ['403 and a code of the service', { status: 403, body: '{"errors":[{"code":904}]}' }],
  ['404', { status: 404 }],
  ['404 and the page of a balancer', { status: 404, headers: HTML, body: PROXY_PAGE }],
  ['405', { status: 405 }],
  ['422', { status: 422 }],
  ['425', { status: 425 }],
  ['a redirect', { status: 302, headers: { location: 'http://127.0.0.1:1/login' } }],
  ['304', { status: 304 }],
])('a refusal after the first page is retried: %s', async (_what, refusal) => {
  const { source, db, run } = await begin();
  let left = 2;
  source.instead = (asked) => (listed(5)(asked) && left-- > 0 ? refusal : null);
  expect(await run()).toMatchObject({ state: 'complete', proof: 'sealed', created: 900 });
  expect(catalogOf(db).size).toBe(900);
  expect(runsIn(db)).toHaveLength(1);
});

it.skipIf(!redisAvailable)(
  'a refusal after the first page is retried by fetchers behind Redis',
  { tags: ['stores'] },
  async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.stop());
    const { source, run } = await begin({ REDIS_URL: redis.url });
    let left = 2;
    source.instead = (asked) => (listed(5)(asked) && left-- > 0 ? { status: 403 } : null);
    expect(await run()).toMatchObject({ state: 'complete', proof: 'sealed', created: 900 });
  },
);

it('a refusal after the first page that stays ends the run with what was refused, and the run is resumed with its pages', async () => {
  const { source, run } = await begin();
  refuseFrom(source, listed(5), 404);
  const error = await errorOf(run());
  expect(error).toMatchObject({ code: 'SOURCE_UNAVAILABLE', exitCode: 75, status: 404 });
  expect(error.message).toMatch(
    /answered 404 \(page \d of the list, offset \d+, size \d+, attempt 8 of 8\); other requests of this run were answered$/,
  );
  expect(error.hint).not.toMatch(/^Check/);
  source.instead = () => null;
  const before = source.requests.length;
  expect(await run()).toMatchObject({ id: 1, state: 'complete', proof: 'sealed', created: 900 });
  expect(source.requests.slice(before).filter(listed(1))).toEqual([]);
});

it('a refusal after the first page that stays when the run is resumed ends it, so that other runs may begin', async () => {
  const { source, db, run } = await begin();
  refuseFrom(source, listed(5), 400);
  await errorOf(run());
  expect(runsIn(db)).toMatchObject([{ state: 'reading' }]);
  source.instead = () => ({ status: 400 });
  expect((await errorOf(run())).message).toMatch(/page \d of the list/);
  expect(runsIn(db)).toMatchObject([{ state: 'failed', error: expect.stringContaining('answered 400') as string }]);
  expect(await errorOf(run())).toMatchObject({ code: 'SOURCE_REFUSED', retryable: false });
});

it('a refusal of the key after the first page does not let the next one, which may see other products, go on with the run', async () => {
  const { source, db, run } = await begin();
  source.instead = (asked) => (listed(5)(asked) ? { status: 403 } : null);
  expect((await errorOf(run())).hint).toContain('Check CATCHWORD_API_KEY');
  expect(runsIn(db)).toMatchObject([{ state: 'failed' }]);
});

it('a refusal after the first page with 601 ends the run at once', async () => {
  const { source, run } = await begin();
  source.instead = (asked) =>
    listed(5)(asked) ? { status: 403, body: '{"errors":["601: the token has expired"]}' } : null;
  const error = await errorOf(run());
  expect(error).toMatchObject({ code: 'SERVICE_TOKEN', serviceCode: 601 });
  expect(error.message).toContain('page 5 of the list');
  expect(source.requests.filter(listed(5))).toHaveLength(1);
});

it.each([401, 403, 404, 400])('a refusal of the first request with %i ends the run at once', async (status) => {
  const { source, run } = await begin();
  source.instead = () => ({ status });
  const error = await errorOf(run());
  expect(error.message).toMatch(/ \(page 1 of the list, offset 0, size \d+, attempt 1 of 3\)$/);
  expect(error.retryable).toBe(false);
  // After a 400 the size may be wrong.
  const sizes = source.requests.map(({ searchParams }) => searchParams.get('per_page'));
  expect(sizes).toEqual(status === 400 ? ['100', '50', '25'] : ['100']);
});

it('an error of a delta names the delta', async () => {
  const { source, run } = await begin();
  await run();
  source.instead = () => ({ status: 400 });
  expect((await errorOf(run('delta'))).message).toMatch(
    /answered 400 \(page 1 of the delta since 2\d{3}-[\d-]+T[\d:.]+Z, offset 0, size \d+, attempt 1 of 3\)$/,
  );
});
