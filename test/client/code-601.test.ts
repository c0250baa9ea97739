// @module-tag service
import { expect, it } from 'vitest';
import { readLicenses } from '../../src/client/licenses/licenses.ts';
import { createCatalog } from '../../src/client/products/products.ts';
import { createUsers } from '../../src/client/users/users.ts';
import { connectTo, failure, golden, NEVER, type Reply, serve } from './connection.ts';

const TEXT = 'The access token has expired';
const LAYOUTS = [
  golden('error-601.xml'),
  `<error code="601" message="${TEXT}"/>`,
  `<error message="${TEXT}" code="601"></error>`,
  `<error><code>601</code><message>${TEXT}</message></error>`,
  `<errors><error code="601" description="${TEXT}"/></errors>`,
  `<error>601: ${TEXT}</error>`,
  `<licenses><error message="601: ${TEXT}"/></licenses>`,
  `{"errors":["601: ${TEXT}"]}`,
  `"601: ${TEXT}"`,
  `601: ${TEXT}`,
];

function products(url: string) {
  const settings = { pageParam: 'page', perPageParam: 'per_page' };
  const more = { untilParam: 'until', currencyParam: 'currency', lookupPath: '/v4/products/:vbid' };
  return createCatalog(connectTo(url).caller, { ...settings, ...more });
}

async function operations(reply: Reply) {
  const { url } = await serve(() => reply);
  return {
    page: () => products(url).products().next(),
    product: () => products(url).product('x1'),
    licenses: () => readLicenses(connectTo(url).caller, {}, NEVER),
    reset: () => createUsers(connectTo(url).caller, '.xml').reset(),
  };
}

/** Expects the code 601 in the answer to each operation. */
async function expectStale(asked: Readonly<Record<string, () => Promise<unknown>>>, body: string, status = 200) {
  for (const [name, ask] of Object.entries(asked)) {
    expect(await failure(ask()), `${name} ${body}`).toMatchObject({ code: 'SERVICE_TOKEN', serviceCode: 601, status });
  }
}

// @rule 7-5, 7-7
it.each([200, 401, 403, 422, 500])(
  'the code 601 is found in every layout, by every operation, with status %i',
  async (status) => {
    for (const body of LAYOUTS) {
      const headers = { 'content-type': body.startsWith('<') ? 'application/xml' : 'text/plain' };
      await expectStale(await operations({ status, body, headers }), body, status);
    }
  },
);

it('the code 601 is not found in a title, a license or a number of items', async () => {
  const item = { vbid: 'x1', title: '601: The access token has expired', code: '601', description: 'token' };
  const page = JSON.stringify({ num_items: 601, page: 1, per_page: 1000, total_pages: 1, items: [item] });
  expect((await (await operations({ body: page })).page()).value).toMatchObject({ products: [{ vbid: 'x1' }] });
  const lookup = JSON.stringify({ ...item, status: 'token 601', kind: 'book' });
  expect(await (await operations({ body: lookup })).product()).toMatchObject({ vbid: 'x1' });
  const stateful = JSON.stringify({ vbid: 'x1', status: '601', message: 'token' });
  expect(await (await operations({ body: stateful })).product()).toMatchObject({ vbid: 'x1' });
  const broken = page.slice(0, -20);
  expect(await failure((await operations({ body: broken })).page())).toMatchObject({ code: 'PAGE_BROKEN' });
  const license = '<license name="601: The access token" code-use="601" status="601" sku="a"/>';
  const { licenses } = await (await operations({ body: `<licenses>${license}</licenses>` })).licenses();
  expect(licenses).toMatchObject([{ sku: 'a' }]);
  for (const body of ['OK', 'The token was reset', '<status>200</status>']) {
    expect(await failure((await operations({ body })).reset())).toMatchObject({ code: 'SERVICE_ERROR' });
  }
});

it('a status of 404 means a wrong address if a page or an operation is missing', async () => {
  const page = await operations({ status: 404, body: '<!DOCTYPE html><html>Not found</html>' });
  expect(await failure(page.product())).toMatchObject({ code: 'SOURCE_NOT_SERVICE' });
  const empty = await operations({ status: 404, body: '' });
  for (const ask of [empty.page, empty.licenses]) {
    expect(await failure(ask())).toMatchObject({ code: 'SOURCE_NOT_SERVICE' });
  }
});
