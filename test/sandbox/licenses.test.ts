// @module-tag service
import { expect } from 'vitest';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import { createNumbering } from '../../src/sandbox/catalog/product-numbers.ts';
import { SANDBOX_DEFAULTS } from '../../src/sandbox/options.ts';
import type { Sandbox } from '../../src/sandbox/sandbox-server.ts';
import { NEW, put } from './asset-requests.ts';
import { get, getPage, itWith, sandboxFor } from './client.ts';
import { callerHeaders, control, errorOf, exchange, messageOf, rootOf } from './exchange.ts';

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

// @rule 2.3-5..6
it('2.3: the sandbox counts the listed licenses that have not expired, and all licenses', async ({ sandbox }) => {
  expect(await countsOf(sandbox)).toEqual(['6', '7']);
  expect(await countsOf(sandbox, '?license_type=online')).toEqual(['3', '7']);
  expect(await countsOf(sandbox, `?sku=${vbid(1)}`)).toEqual(['0', '7']);
  expect(await countsOf(sandbox, '?sku=9780000000019')).toEqual([]);
});

// @rule 2.3-2, 4.2-3, 4.2-8
it('4.2 rule 3: the sandbox lists only the licenses of a type', async ({ sandbox }) => {
  const types = async (query: string) => (await licensesOf(sandbox, `?sku=${vbid(0)}${query}`)).map(({ type }) => type);
  expect(await types('&license_type=online')).toEqual(['online']);
  expect(await types('&license_type=downloadable')).toEqual(['downloadable']);
  expect(await types('&license_type=download')).toEqual(['downloadable']);
});

// @rule 2.3-2
it('the sandbox finds downloadable licenses by either word', async ({ sandbox }) => {
  for (const type of ['downloadable', 'download']) {
    expect(await licensesOf(sandbox, `?sku=BOOKSHELF-TUTORIAL&license_type=${type}`)).toHaveLength(1);
  }
  expect(await licensesOf(sandbox, '?sku=BOOKSHELF-TUTORIAL&license_type=online')).toEqual([]);
});

// @rule 4.2-3
it('the sandbox rejects an invalid query of licenses', async ({ sandbox }) => {
  for (const query of ['license_type=paper', 'license_type=', 'license_type=ONLINE', 'sku=']) {
    const answer = await exchange(sandbox, `GET /v3/licenses.xml?${query}`);
    expect([query, errorOf(answer)]).toEqual([query, [400, '400']]);
    expect(messageOf(answer)).toMatch(`${query.split('=')[0]}: `);
  }
});

// @rule 5-7
it('5 rule 3: the sandbox replies with 601 and status 200 to a stale or unknown token', async ({ sandbox }) => {
  await control(sandbox, 'expire', READER);
  for (const token of ['sandboxtoken', 'unknown']) {
    const answer = await exchange(sandbox, 'GET /v3/licenses.xml', null, callerHeaders(token));
    expect(errorOf(answer)).toEqual([200, '601']);
  }
});

it('2.3: the sandbox removes characters that XML cannot hold from the name', async ({ sandbox }) => {
  const title = 'A \u0001title\ufffe of\u000b \u{1f4d6}';
  expect((await put(sandbox, 'L-1', { ...NEW, title })).status).toBe(200);
  await control(sandbox, 'grant', { ...READER, sku: 'L-1' });
  const names = (await licensesOf(sandbox)).map(({ name }) => name);
  expect(names).toContain('A title of \u{1f4d6}');
});

it('the sandbox rejects a token of another key, as the catalog does', async ({ sandbox }) => {
  const status = async (token: string, key: string) => {
    const headers = callerHeaders(token, key);
    const products = await get(sandbox, '/v4/products', headers);
    return [errorOf(await exchange(sandbox, 'GET /v3/licenses.xml', null, headers)), products.status];
  };
  expect(await status('othersandboxtoken', 'SANDBOXKEY')).toEqual([[200, '601'], 403]);
  expect(await status('sandboxtoken', 'OTHERKEY')).toEqual([[200, '601'], 403]);
  expect(await status('othersandboxtoken', 'OTHERKEY')).toEqual([null, 200]);
});

// @rule 4.2-4, 5-3
it('the sandbox requires key and token for licenses', async ({ sandbox }) => {
  const error = async (headers: Record<string, string>) =>
    errorOf(await exchange(sandbox, 'GET /v3/licenses.xml', null, headers));
  expect(await error({})).toEqual([401, '401']);
  expect(await error(callerHeaders(null))).toEqual([401, '401']);
  expect(await error(callerHeaders('sandboxtoken', 'WRONG'))).toEqual([403, '403']);
});

// @rule 3-3..4
it('the sandbox keeps one copy of duplicates, with the later expiration', async ({ sandbox }) => {
  const sku = vbid(7);
  const expirations = ['2016-01-01', 'Thu, 31 Dec 2099 23:59:59 GMT', '2030-01-01T00:00:00Z', 'never', '2040-01-01'];
  const seen: (string | undefined)[] = [];
  for (const [at, expiration] of expirations.entries()) {
    const type = at % 2 === 0 ? 'downloadable' : 'download';
    await control(sandbox, 'grant', { ...READER, sku, type, expiration });
    const found = await licensesOf(sandbox, `?sku=${sku}`);
    expect(found).toHaveLength(1);
    seen.push(found[0]?.expiration);
  }
  expect(seen).toEqual([expirations[0], expirations[1], expirations[1], 'never', 'never']);
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

it('the sandbox does not list the licenses of another user', async ({ sandbox }) => {
  const user = { reference: 'pupil', guid: 'PUPIL007', access_token: 'pupiltoken' };
  await control(sandbox, 'user', user);
  await control(sandbox, 'grant', { guid: 'PUPIL007', sku: vbid(9), type: 'online', code_use: 'p+e' });
  expect(await licensesOf(sandbox, '', 'pupiltoken')).toMatchObject([{ sku: vbid(9), 'code-use': 'p+e' }]);
  expect(await licensesOf(sandbox, `?sku=${vbid(9)}`)).toEqual([]);
});

it.for(['unknown', undefined])('a license cannot be granted to the user %s', async (reference, { sandbox }) => {
  const body = JSON.stringify({ reference, sku: 'A', type: 'online' });
  const answer = await exchange(sandbox, 'POST /_sandbox/grant', body);
  expect(answer).toMatchObject({ status: 404, text: '{"errors":["User not found"]}' });
});
