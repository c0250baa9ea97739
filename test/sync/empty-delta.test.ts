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
