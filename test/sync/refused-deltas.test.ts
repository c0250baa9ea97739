import { expect, it } from 'vitest';
import { catalogOf } from '../support/mirror.ts';
import { bodies, isDelta, numbered, rawPlace } from './raw-place.ts';

/** A source of 50 products that refuses every request with `from`. */
async function refusing(
  instead: { readonly status: number; readonly body?: string; readonly headers?: Record<string, string> },
  more: Record<string, string> = {},
) {
  const place = await rawPlace(bodies(numbered(50)), {
    CATCHWORD_DELTA_OVERLAP: '0s',
    CATCHWORD_PER_PAGE: '20',
    ...more,
  });
  place.source.instead = (asked) => (isDelta(asked) ? instead : null);
  return place;
}

it.each([
  { status: 400, body: '{"message":"from must be an RFC 822 date"}' },
  { status: 404 },
  { status: 422, body: '{"errors":["from: unknown parameter"]}' },
  { status: 501 },
  // By the rule of a firewall, as a part of what the key may do, and with another address.
  { status: 403 },
  { status: 402, body: '{"message":"deltas are not in this plan"}' },
  { status: 302, headers: { location: '/changes' } },
])('a full run whose deltas are refused with $status ends open, and says why', async (instead) => {
  const { source, db, run } = await refusing(instead);
  const ended = await run();
  expect(ended).toMatchObject({ state: 'complete', proof: 'open', created: 50 });
  const words = /"([^"]+)"[\]}]+$/.exec(instead.body ?? '')?.[1] ?? '';
  expect(ended.reasons).toEqual([
    expect.stringMatching(
      new RegExp(
        `^offset 0 and everything after it cannot be read: .* (?:answered ${instead.status}|redirects).*${words}.*the delta since .* attempt 3 of 3`,
      ),
    ),
  ]);
  // In the size of the list only; the others ask for the list.
  const deltas = source.requests.filter(isDelta);
  expect(new Set(deltas.map(({ searchParams }) => searchParams.get('per_page')))).toEqual(new Set(['20']));
  expect(deltas).toHaveLength(3);
  expect(source.requests).toHaveLength(9);
  expect(catalogOf(db).size).toBe(50);
});

it.each([
  { status: 500, body: '{"message":"from is broken"}' },
  { status: 408 },
  { status: 200, body: '{"error":"from is broken"}' },
])('a full run whose deltas are answered with trouble each time, $status, ends open, and says why', async (instead) => {
  const { source, db, run } = await refusing(instead);
  const ended = await run();
  expect(ended).toMatchObject({ state: 'complete', proof: 'open', created: 50 });
  expect(ended.reasons).toEqual([
    expect.stringMatching(/^offset 0 and everything after it cannot be read: .*the delta since/),
  ]);
  source.items = bodies(numbered(50).slice(1));
  expect(await run()).toMatchObject({ proof: 'open', removed: 0, missing: 1 });
  expect(await run()).toMatchObject({ proof: 'open', removed: 1, missing: 0 });
  expect(catalogOf(db).size).toBe(49);
});

it.each([401, 403, 404, 500])(
  'a run whose deltas are refused with %i does not end if its list is refused meanwhile, too',
  async (status) => {
    const { source, run } = await refusing({ status });
    let isRefusing = false;
    source.instead = (asked) => {
      isRefusing ||= isDelta(asked);
      return isRefusing ? { status } : null;
    };
    await expect(run()).rejects.toMatchObject({ code: 'SOURCE_UNAVAILABLE', status, exitCode: 75 });
    source.instead = () => null;
    expect(await run()).toMatchObject({
      id: status === 404 || status === 500 ? 1 : 2,
      state: 'complete',
      proof: 'sealed',
    });
  },
);

it('a product that is gone is removed after two full runs whose deltas are refused have not seen it, and not sooner', async () => {
  const { source, db, run } = await refusing({ status: 400 });
  await run();
  source.items = bodies(numbered(50).slice(1));
  expect(await run()).toMatchObject({ proof: 'open', removed: 0, missing: 1 });
  expect(await run()).toMatchObject({ proof: 'open', removed: 1, missing: 0 });
  expect(catalogOf(db).size).toBe(49);
});

it('a product is never removed by runs whose deltas are refused if the list has fewer products than it says', async () => {
  const { source, db, run } = await refusing({ status: 400 });
  await run();
  source.instead = (asked) => {
    if (isDelta(asked)) return { status: 400 };
    const [page = 1, perPage = 1] = ['page', 'per_page'].map((name) => Number(asked.searchParams.get(name)));
    const items = bodies(numbered(50).slice(1))
      .slice((page - 1) * perPage, page * perPage)
      .join(',');
    return {
      status: 200,
      body: `{"num_items":50,"page":${page},"per_page":${perPage},"total_pages":3,"items":[${items}]}`,
    };
  };
  for (let night = 1; night <= 3; night++) expect(await run()).toMatchObject({ proof: 'open', removed: 0 });
  expect(catalogOf(db).size).toBe(50);
});

it('a product that is gone is removed by a lookup in a run whose deltas are refused', async () => {
  const { source, run } = await refusing({ status: 501 }, { CATCHWORD_LOOKUP_PATH: '/v4/products/:vbid' });
  await run();
  source.items = bodies(numbered(50).slice(1));
  source.instead = (asked) => {
    const vbid = asked.pathname.split('/').at(3);
    if (vbid === undefined) return isDelta(asked) ? { status: 501 } : null;
    return vbid === 'B0' ? { status: 404 } : { status: 200, body: `{"vbid":"${vbid}"}` };
  };
  expect(await run()).toMatchObject({ proof: 'open', removed: 1, missing: 0 });
});

it.each([400, 413, 422, 501])(
  'a delta run that is refused with %i fails with one request, and leaves the mirror its products',
  async (status) => {
    const { source, db, run } = await refusing({ status });
    await run();
    const before = source.requests.length;
    await expect(run('delta')).rejects.toMatchObject({
      code: 'SOURCE_REFUSED',
      status,
      retryable: false,
      message: expect.stringContaining('page 1 of the delta since') as string,
    });
    expect(source.requests.length - before).toBe(1);
    expect(catalogOf(db).size).toBe(50);
  },
);

it.each([400, 404])(
  'a delta run whose from is refused with %i says that the service may have no deltas',
  async (status) => {
    const { run } = await refusing({ status });
    await run();
    const hint = expect.stringContaining('set CATCHWORD_DELTA_CRON=off') as string;
    await expect(run('delta')).rejects.toMatchObject({ hint });
  },
);

it('a full run whose deltas are refused for a while, but not all of them, concludes nothing from the others', async () => {
  const { source, run } = await refusing({ status: 400 });
  source.instead = () => null;
  await run();
  source.items = bodies(numbered(50).slice(1));
  // Only the last delta, which would decide, is refused.
  let deltas = 0;
  source.instead = (asked) => (isDelta(asked) && ++deltas > 1 ? { status: 400 } : null);
  for (let night = 1; night <= 3; night++) {
    deltas = 0;
    expect(await run()).toMatchObject({ proof: 'open', removed: 0 });
  }
});

it.each([200, 204])('a product is not removed because its lookup is answered with %i and nothing', async (status) => {
  const { source, db, run } = await refusing({ status: 501 }, { CATCHWORD_LOOKUP_PATH: '/v4/products/:vbid' });
  await run();
  source.items = bodies(numbered(50).slice(1));
  source.instead = (asked) => {
    const vbid = asked.pathname.split('/').at(3);
    if (vbid === undefined) return isDelta(asked) ? { status: 501 } : null;
    return vbid === 'B0' ? { status, body: '' } : { status: 200, body: `{"vbid":"${vbid}"}` };
  };
  expect(await run()).toMatchObject({ proof: 'open', removed: 0, missing: 1 });
  expect(catalogOf(db).has('B0')).toBe(true);
});
