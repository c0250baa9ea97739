import { expect, it } from 'vitest';
import { catalogOf } from '../support/mirror.ts';
import { bodies, isDelta, rawPlace } from './raw-place.ts';

const NOTHING = { status: 404, body: '{"errors":["No products were updated since then"]}' };

/** A filled mirror of two products, and what its source was asked afterwards: `delta` or `list`. */
async function filledMirror() {
  const place = await rawPlace(bodies(['A', 'B']));
  const { source } = place;
  await place.run();
  const before = source.requests.length;
  const asked = () => source.requests.slice(before).map((one) => (isDelta(one) ? 'delta' : 'list'));
  return { ...place, asked };
}

const ENVELOPE = '"num_items":0,"page":1,"per_page":1000,"total_pages":0';

it.each([
  ['items that are null', `{${ENVELOPE},"items":null}`],
  ['no items', `{${ENVELOPE}}`],
  ['an object for items', `{${ENVELOPE},"items":{}}`],
  ['an empty text for items', `{${ENVELOPE},"items":""}`],
  ['items alone', '{"items":[]}'],
  ['null alone', '{"items":null}'],
  ['an empty array', '[]'],
  ['an empty body', ''],
  ['page 0', '{"num_items":0,"page":0,"per_page":0,"total_pages":0,"items":[]}'],
  ['numbers as texts', '{"num_items":"0","page":"0","total_pages":"0","items":null}'],
  ['a total alone', '{"num_items":0}'],
])('an empty delta may be answered with 200 and %s', async (_what, body) => {
  const { source, db, run } = await filledMirror();
  for (const status of [200, ...(body === '' ? [] : [404])]) {
    source.instead = (one) => (isDelta(one) ? { status, body } : null);
    expect(await run('delta')).toMatchObject({ kind: 'delta', state: 'complete', items: 0, reasons: [] });
    expect(await run()).toMatchObject({ kind: 'full', state: 'complete', proof: 'sealed' });
    expect(catalogOf(db).size).toBe(2);
  }
});

it.each([
  ['a total', '{"num_items":3,"page":0,"per_page":0,"items":null}'],
  ['a number of pages', '{"num_items":0,"page":1,"per_page":1000,"total_pages":3,"items":null}'],
  ['an error', `{${ENVELOPE},"items":null,"error":"no index"}`],
  ['nothing at all', '{}'],
  ['items by their keys', `{${ENVELOPE},"items":{"A":{}}}`],
  ['a message', '{"message":"nothing here"}'],
  ['null', 'null'],
])('an empty delta is not 200 with %s', async (_what, body) => {
  const { source, run } = await filledMirror();
  source.instead = (one) => (isDelta(one) ? { status: 200, body } : null);
  await expect(run('delta')).rejects.toMatchObject({ retryable: true });
});

it('an empty delta of few words is believed only after the list, and a second time', async () => {
  const { source, run, asked } = await filledMirror();
  source.instead = (one) => (isDelta(one) ? { status: 200, body: '[]' } : null);
  await run('delta');
  expect(asked().slice(0, 3)).toEqual(['delta', 'list', 'delta']);
});

it('a page behind the end of a list may have null instead of its items', async () => {
  const items = bodies(Array.from({ length: 20 }, (_, at) => `B${at}`));
  const { source, run } = await rawPlace(items, { CATCHWORD_PER_PAGE: '10', CATCHWORD_SEAM: 'off' });
  source.instead = (one) => {
    if (isDelta(one) || one.searchParams.get('page') !== '3') return null;
    return { status: 200, body: '{"num_items":20,"page":3,"per_page":10,"total_pages":2,"items":null}' };
  };
  expect(await run()).toMatchObject({ state: 'complete', created: 20 });
});

it.each([{ status: 204 }, NOTHING])(
  'an empty delta may be answered with $status, in deltas and full runs',
  async (instead) => {
    const { source, db, run } = await filledMirror();
    source.instead = (one) => (isDelta(one) ? instead : null);
    const delta = await run('delta');
    expect(delta).toMatchObject({ kind: 'delta', state: 'complete', items: 0, reasons: [] });
    expect(await run()).toMatchObject({
      kind: 'full',
      state: 'complete',
      proof: 'sealed',
      reasons: [],
    });
    expect(catalogOf(db).size).toBe(2);
  },
);

it('an empty delta is believed with 404 only after the list, which is at the same address, was read', async () => {
  const { source, run, asked } = await filledMirror();
  source.instead = (one) => (isDelta(one) ? NOTHING : null);
  await run('delta');
  expect(asked().slice(0, 3)).toEqual(['delta', 'list', 'delta']);
});

it.each([
  ['the page of a proxy', { status: 404, headers: { 'content-type': 'text/html' }, body: '<html>Not found</html>' }],
  ['no body', { status: 404 }],
  ['an answer of a gateway', { status: 404, body: '{"message":"no Route matched with those values"}' }],
  ['a missing catalog', { status: 404, body: '{"errors":["Catalog not found"]}' }],
])('an empty delta is not 404 with %s', async (_what, instead) => {
  const { source, run, asked } = await filledMirror();
  source.instead = (one) => (isDelta(one) ? instead : null);
  await expect(run('delta')).rejects.toMatchObject({ status: 404, retryable: false });
  expect(asked()).toEqual(['delta']);
});

it('an empty delta is not 404 if the list is not there either', async () => {
  const { source, run } = await filledMirror();
  source.instead = () => NOTHING;
  await expect(run('delta')).rejects.toMatchObject({ code: 'SOURCE_NOT_SERVICE', status: 404 });
});

it('an empty delta is not a single 404: the delta is read after it', async () => {
  const { source, db, run } = await filledMirror();
  let left = 1;
  const page = '{"num_items":1,"page":1,"per_page":1000,"total_pages":1,"items":[{"vbid":"C"}]}';
  source.instead = (one) => {
    if (!isDelta(one)) return null;
    return left-- > 0 ? NOTHING : { status: 200, body: page };
  };
  expect(await run('delta')).toMatchObject({ state: 'complete', created: 1 });
  expect([...catalogOf(db).keys()]).toContain('C');
});

it('a list that is answered with 204 is not an empty catalog', async () => {
  const { source, db, run } = await filledMirror();
  source.instead = (one) => (isDelta(one) ? null : { status: 204 });
  await expect(run()).rejects.toMatchObject({ code: 'PAGE_INVALID' });
  expect(catalogOf(db).size).toBe(2);
});
