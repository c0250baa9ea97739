import { join } from 'node:path';
import { expect, it } from 'vitest';
import { load } from '../support/load.ts';
import { catalogOf, settingsFor, temporaryDirectory } from '../support/mirror.ts';
import { startRawSource } from '../support/raw-source.ts';

const ITEMS = [Buffer.from('{"vbid":"A"}'), Buffer.from('{"vbid":"B"}')];
const NOTHING = { status: 404, body: '{"errors":["No products were updated since then"]}' };

/** A filled mirror of two products, and what its source was asked afterwards: `delta` or `list`. */
async function filledMirror() {
  const source = await startRawSource(ITEMS);
  const db = join(temporaryDirectory(), 'catalog.db');
  const settings = settingsFor(source.url, db, { LOG_LEVEL: 'silent' });
  await load(settings, 'full');
  const before = source.requests.length;
  const isDelta = (asked: URL): boolean => asked.searchParams.has('from');
  const asked = () => source.requests.slice(before).map((one) => (isDelta(one) ? 'delta' : 'list'));
  return { source, db, settings, isDelta, asked };
}

it.each([{ status: 204 }, NOTHING])(
  'an empty delta may be answered with $status, in deltas and full runs',
  async (instead) => {
    const { source, db, settings, isDelta } = await filledMirror();
    source.instead = (one) => (isDelta(one) ? instead : null);
    const delta = await load(settings, 'delta');
    expect(delta).toMatchObject({ kind: 'delta', state: 'complete', items: 0, reasons: [] });
    expect(await load(settings, 'full')).toMatchObject({
      kind: 'full',
      state: 'complete',
      proof: 'sealed',
      reasons: [],
    });
    expect(catalogOf(db).size).toBe(2);
  },
);

it('an empty delta is believed with 404 only after the list, which is at the same address, was read', async () => {
  const { source, settings, isDelta, asked } = await filledMirror();
  source.instead = (one) => (isDelta(one) ? NOTHING : null);
  await load(settings, 'delta');
  expect(asked().slice(0, 3)).toEqual(['delta', 'list', 'delta']);
});

it.each([
  ['the page of a proxy', { status: 404, headers: { 'content-type': 'text/html' }, body: '<html>Not found</html>' }],
  ['no body', { status: 404 }],
  ['an answer of a gateway', { status: 404, body: '{"message":"no Route matched with those values"}' }],
  ['a missing catalog', { status: 404, body: '{"errors":["Catalog not found"]}' }],
])('an empty delta is not 404 with %s', async (_what, instead) => {
  const { source, settings, isDelta, asked } = await filledMirror();
  source.instead = (one) => (isDelta(one) ? instead : null);
  await expect(load(settings, 'delta')).rejects.toMatchObject({ status: 404, retryable: false });
  expect(asked()).toEqual(['delta']);
});

it('an empty delta is not 404 if the list is not there either', async () => {
  const { source, settings } = await filledMirror();
  source.instead = () => NOTHING;
  await expect(load(settings, 'delta')).rejects.toMatchObject({ code: 'SOURCE_NOT_SERVICE', status: 404 });
});

it('an empty delta is not a single 404: the delta is read after it', async () => {
  const { source, db, settings, isDelta } = await filledMirror();
  let left = 1;
  const page = '{"num_items":1,"page":1,"per_page":1000,"total_pages":1,"items":[{"vbid":"C"}]}';
  source.instead = (one) => {
    if (!isDelta(one)) return null;
    return left-- > 0 ? NOTHING : { status: 200, body: page };
  };
  expect(await load(settings, 'delta')).toMatchObject({ state: 'complete', created: 1 });
  expect([...catalogOf(db).keys()]).toContain('C');
});

it('a list that is answered with 204 is not an empty catalog', async () => {
  const { source, db, settings, isDelta } = await filledMirror();
  source.instead = (one) => (isDelta(one) ? null : { status: 204 });
  await expect(load(settings, 'full')).rejects.toMatchObject({ code: 'PAGE_INVALID' });
  expect(catalogOf(db).size).toBe(2);
});
