// @module-tag service

import { createUsers } from 'catchword-client/users/users';
import { expect, it } from 'vitest';
import { connectTo, failure, golden } from './connection.ts';
import { talk } from './support.ts';

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

// @rule 7-5, 7-7
it.each([200, 401, 403, 422, 500])(
  'the code 601 is found in every layout, by every operation, with status %i',
  async (status) => {
    let body = '';
    const type = () => (body.startsWith('<') ? 'application/xml' : 'text/plain');
    const { client, url } = await talk(() => ({ status, headers: { 'content-type': type() }, body }));
    const users = createUsers(connectTo(url).caller, '.xml');
    for (body of LAYOUTS) {
      const asked = {
        page: () => client.catalog.products().next(),
        product: () => client.catalog.product('x1'),
        licenses: () => client.licenses.read(),
        reset: () => users.reset(),
      };
      for (const [name, ask] of Object.entries(asked)) {
        const found = { code: 'SERVICE_TOKEN', serviceCode: 601, status };
        expect(await failure(ask()), `${name} ${body}`).toMatchObject(found);
      }
    }
  },
);

it('the code 601 is not found in a page that is cut off', async () => {
  const page = {
    num_items: 601,
    page: 1,
    per_page: 1000,
    total_pages: 1,
    items: [{ vbid: 'x1', title: `601: ${TEXT}` }],
  };
  const { client } = await talk(() => ({ body: JSON.stringify(page).slice(0, -20) }));
  expect(await failure(client.catalog.products().next())).toMatchObject({ code: 'PAGE_BROKEN' });
});
