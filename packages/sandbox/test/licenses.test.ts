// @module-tag service

import { type Clock, systemClock } from '@catchword/base/clock';
import { createNumbering } from '@catchword/sandbox/catalog/product-numbers';
import { SANDBOX_DEFAULTS } from '@catchword/sandbox/options';
import type { Sandbox } from '@catchword/sandbox/sandbox-server';
import { getPage, itWith, sandboxFor } from '@catchword/testing/sandbox-for';
import { expect } from 'vitest';
import { callerHeaders, control, exchange, rootOf } from './exchange.ts';

const it = itWith({ items: 10 });

type Attributes = Readonly<Record<string, string>>;

async function licensesOf(sandbox: Sandbox, query = '', token = 'sandboxtoken'): Promise<Attributes[]> {
  const root = rootOf(await exchange(sandbox, `GET /v3/licenses.xml${query}`, null, callerHeaders(token)));
  expect(root.name).toBe('licenses');
  return root.children.filter(({ name }) => name === 'license').map(({ attributes }) => Object.fromEntries(attributes));
}

async function countsOf(sandbox: Sandbox, query = ''): Promise<string[]> {
  const root = rootOf(await exchange(sandbox, `GET /v3/licenses.xml${query}`));
  const summary = root.children.filter(({ name }) => name === 'summary');
  return summary.flatMap(({ attributes }) => [...attributes.values()]);
}

const vbid = (index: number) => createNumbering(SANDBOX_DEFAULTS.seed).vbid(index);
const READER = { reference: 'sandbox-reader' };

// @rule 2.3-3, 4.2-1, 4.2-6
it('4.2 rule 1: the sandbox lists all licenses of the account with their expirations', async ({ sandbox }) => {
  const found = await licensesOf(sandbox);
  expect(found.map(({ sku, type, expiration }) => [sku, type, expiration])).toEqual([
    [vbid(0), 'online', 'never'],
    [vbid(0), 'downloadable', 'never'],
    [vbid(1), 'downloadable', 'Thu, 10 Mar 2016 22:14:54 GMT'],
    [vbid(2), 'online', '2099-12-31'],
    [vbid(3), 'downloadable', 'Thu, 31 Dec 2099 23:59:59 GMT'],
    [vbid(4), 'online', 'never'],
    ['BOOKSHELF-TUTORIAL', 'download', 'never'],
  ]);
});

// @rule 2.3-1, 2.3-4
it('2.3: the sandbox returns all attributes, with the titles of the catalog', async () => {
  const sandbox = await sandboxFor({ items: 10, details: true });
  const names = 'imprint publisher name sku isbn part_of term code-use kind type expiration'.split(' ');
  const found = await licensesOf(sandbox);
  for (const license of found) expect(Object.keys(license)).toEqual(names);
  const { items } = await getPage(sandbox);
  const item = items.find((one) => one.vbid === vbid(1));
  const license = found.find(({ sku }) => sku === vbid(1));
  expect(license).toMatchObject({ name: item?.title, publisher: item?.publisher, kind: item?.kind, isbn: vbid(1) });
  expect(new Set(found.map((one) => one['code-use']))).toEqual(
    new Set(['code-api', 'add-drop', 'promotional', 'p+e', 'demo']),
  );
});

// @rule 2.3-3, 3-2
it.each([
  ['2030-01-31', '2030-01-31T23:59:59Z', '2030-02-01T00:00:00Z'],
  ['Thu, 31 Jan 2030 10:00:00 GMT', '2030-01-31T09:59:59Z', '2030-01-31T10:00:00Z'],
  ['2030-01-31T10:00:00+02:00', '2030-01-31T07:59:59Z', '2030-01-31T08:00:00Z'],
])(
  'the license until %s ends at that time (a date at its end), and is still listed',
  async (expiration, before, after) => {
    for (const [now, usable] of [
      [before, '1'],
      [after, '0'],
    ] as const) {
      const clock: Clock = { ...systemClock, now: () => Date.parse(now) };
      const sandbox = await sandboxFor({ items: 10, clock });
      await control(sandbox, 'grant', { ...READER, sku: vbid(8), type: 'online', expiration });
      expect(await countsOf(sandbox, `?sku=${vbid(8)}`)).toEqual([usable, '8']);
    }
  },
);

it.for(['unknown', undefined])('a license cannot be granted to the user %s', async (reference, { sandbox }) => {
  const body = JSON.stringify({ reference, sku: 'A', type: 'online' });
  const answer = await exchange(sandbox, 'POST /_sandbox/grant', body);
  expect(answer).toMatchObject({ status: 404, text: '{"errors":["User not found"]}' });
});
