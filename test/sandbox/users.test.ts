// @module-tag service
import { expect } from 'vitest';
import { createNumbering } from '../../src/sandbox/catalog/product-numbers.ts';
import type { Sandbox } from '../../src/sandbox/sandbox-server.ts';
import { itWith, sandboxFor } from './client.ts';
import {
  attributesOf,
  callerHeaders,
  control,
  errorOf,
  exchange,
  messageOf,
  outcomes,
  rootOf,
  verify,
} from './exchange.ts';

const it = itWith({ items: 0 });

function create(sandbox: Sandbox, elements: string, path = '/v3/users.xml' as const) {
  return exchange(sandbox, `POST ${path}`, `<user>${elements}</user>`, callerHeaders(null));
}

async function fieldsOf(answer: ReturnType<typeof exchange>): Promise<Record<string, string>> {
  const { children } = rootOf(await answer);
  return Object.fromEntries(children.map(({ name, text }) => [name, text]));
}

const FULL = '<email>ada@example.com</email><password>correct horse</password>';

// @rule 4.5-8
it('the sandbox creates a reference user who can be verified at once, and has no licenses', async () => {
  const sandbox = await sandboxFor({ items: 10 });
  const user = await fieldsOf(create(sandbox, '<reference>pupil</reference><first-name>Ada</first-name>'));
  expect(Object.keys(user)).toEqual(['email', 'first-name', 'last-name', 'guid', 'access-token', 'reference']);
  expect(user).toMatchObject({ reference: 'pupil', 'first-name': 'Ada', 'last-name': '' });
  expect(outcomes(await verify(sandbox, '<credential reference="pupil"/>'))).toEqual(['pupil']);
  const licenses = await exchange(sandbox, 'GET /v3/licenses.xml', null, callerHeaders(user['access-token'] ?? ''));
  expect(rootOf(licenses).children.map(({ name }) => name)).toEqual(['summary']);
});

it('the sandbox reads a user at both paths, only for the key that created it', async ({ sandbox }) => {
  const user = await fieldsOf(create(sandbox, '<reference>a/b c&amp;d</reference><email>pupil@example.com</email>'));
  expect(await fieldsOf(exchange(sandbox, `GET /v3/users/${encodeURIComponent('a/b c&d')}`))).toEqual(user);
  const of = (key: string, id: string) => exchange(sandbox, `GET /v3/users.xml/${id}`, null, callerHeaders(null, key));
  expect(errorOf(await of('OTHERKEY', user.guid ?? ''))).toEqual([404, '474']);
  expect(await fieldsOf(of('SANDBOXKEY', 'user-0000001'))).toMatchObject({ reference: 'user-0000001' });
});

// @rule 4.5-8
it('the sandbox creates a full user with email and password, and never returns the password', async ({ sandbox }) => {
  const created = await create(sandbox, FULL);
  const user = await fieldsOf(Promise.resolve(created));
  expect(user).toMatchObject({ email: 'ada@example.com', reference: '' });
  const answers = [
    created,
    await exchange(sandbox, `GET /v3/users.xml/${user.guid}`),
    await verify(sandbox, `<credential guid="${user.guid}"/>`),
    await create(sandbox, FULL),
    await create(sandbox, '<password>correct horse</password>'),
    await create(sandbox, '<reference>r</reference><password>correct horse</password>'),
  ];
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 409, 422, 422]);
  expect(answers.filter(({ text }) => text.includes('correct horse'))).toEqual([]);
});

// @rule 2.4-2, 4.3-9
it('the sandbox rejects a value that is already in use with 904, and changes nothing', async ({ sandbox }) => {
  const first = await fieldsOf(create(sandbox, '<reference>pupil</reference><email>a@example.com</email>'));
  const error = async (elements: string) => errorOf(await create(sandbox, elements));
  expect(await error('<reference>pupil</reference>')).toEqual([409, '904']);
  expect(await error('<reference>user-0000001</reference>')).toEqual([409, '904']);
  expect(await error('<reference>sandbox-reader</reference>')).toEqual([409, '904']);
  expect(await error('<email>A@EXAMPLE.com</email><password>p</password>')).toEqual([409, '904']);
  expect(await fieldsOf(exchange(sandbox, 'GET /v3/users.xml/pupil'))).toEqual(first);
  // Another key may use the same reference: it is tied to the key (4.3, rule 3).
  const other = await exchange(
    sandbox,
    'POST /v3/users.xml',
    '<user><reference>pupil</reference></user>',
    callerHeaders(null, 'OTHERKEY'),
  );
  expect((await fieldsOf(Promise.resolve(other))).guid).not.toBe(first.guid);
});

it.for([
  ['a user without any field', '', /^reference: /],
  ['a full user without a password', '<email>a@example.com</email>', /^password: /],
  ['a full user without an email', '<password>p</password>', /^reference: /],
  ['a reference user with a password', '<reference>r</reference><password>p</password>', /^password: /],
  ['an invalid email', '<email>ada</email><password>p</password>', /^email: /],
] as const)('the sandbox rejects %s with 422, and names the field', async ([, elements, message], { sandbox }) => {
  const answer = await create(sandbox, elements);
  expect(errorOf(answer)).toEqual([422, '650']);
  expect(messageOf(answer)).toMatch(message);
});

it.for([
  ['no body', ''],
  ['another root', '<users/>'],
  ['an element twice', '<user><reference>a</reference><reference>b</reference></user>'],
  ['a DOCTYPE', '<!DOCTYPE user><user><reference>a</reference></user>'],
] as const)('the sandbox rejects a new user of %s with 650 and status 400', async ([, body], { sandbox }) => {
  expect(errorOf(await exchange(sandbox, 'POST /v3/users.xml', body))).toEqual([400, '650']);
});

it('the sandbox grants a book for a redemption code once; errors come with 200 and create no user', async () => {
  const sandbox = await sandboxFor({ items: 20 });
  const withCode = (reference: string, code: string) =>
    create(sandbox, `<reference>${reference}</reference><redemption-code>${code}</redemption-code>`);
  const user = await fieldsOf(withCode('one', 'SANDBOX-BOOK-2'));
  const licenses = await exchange(sandbox, 'GET /v3/licenses.xml', null, callerHeaders(user['access-token'] ?? ''));
  expect(rootOf(licenses).children[0]?.attributes.get('sku')).toBe(createNumbering(1).vbid(11));
  expect(errorOf(await withCode('two', 'SANDBOX-BOOK-2'))).toEqual([200, '469']);
  expect(errorOf(await exchange(sandbox, 'GET /v3/users.xml/two'))).toEqual([404, '474']);
  expect(errorOf(await withCode('two', 'SANDBOX-BOOK-1'))).toBeNull();
});

it('the sandbox creates the same users for the same requests', async () => {
  const make = async () => {
    const sandbox = await sandboxFor({ items: 0 });
    await control(sandbox, 'expire', { reference: 'user-0000001' });
    await create(sandbox, '<reference>one</reference>');
    return (await create(sandbox, FULL)).text;
  };
  expect(await make()).toBe(await make());
});

const reset = (sandbox: Sandbox, token: string | null, path = '/v3/users/reset_access.xml', key = 'SANDBOXKEY') =>
  exchange(sandbox, `POST ${path as '/v3/users/reset_access'}`, null, callerHeaders(token, key));
// @rule 4.5-9, 5-7
it.each(['/v3/users/reset_access.xml', '/v3/users/reset_access'])(
  '4.5: after POST %s, verify returns the new token',
  async (path) => {
    const sandbox = await sandboxFor({ items: 0 });
    const answer = await reset(sandbox, 'sandboxtoken', path);
    expect(errorOf(answer)).toBeNull();
    const token = (await attributesOf(sandbox, 'sandbox-reader')).token;
    expect(token).not.toBe('sandboxtoken');
    // Only verify returns the new token, not the reset.
    expect(answer.text).not.toContain(token);
    expect(outcomes(await verify(sandbox, '<credential access-token="sandboxtoken"/>'))).toEqual(['601']);
    expect(outcomes(await verify(sandbox, `<credential access-token="${token}"/>`))).toEqual(['sandbox-reader']);
  },
);

it('the sandbox accepts the stale token, any number of times', async ({ sandbox }) => {
  await control(sandbox, 'expire', { reference: 'sandbox-reader' });
  const tokens: string[] = [];
  for (let times = 0; times < 3; times++) {
    expect((await reset(sandbox, 'sandboxtoken')).status).toBe(200);
    tokens.push((await attributesOf(sandbox, 'sandbox-reader')).token);
  }
  expect(new Set(tokens).size).toBe(3);
});

it('the sandbox requires both headers, and a token of this key', async ({ sandbox }) => {
  expect(errorOf(await reset(sandbox, null))).toEqual([401, '401']);
  expect(errorOf(await reset(sandbox, 'never'))).toEqual([404, '474']);
  expect(errorOf(await reset(sandbox, 'sandboxtoken', '/v3/users/reset_access', 'OTHERKEY'))).toEqual([404, '474']);
  expect((await attributesOf(sandbox, 'sandbox-reader')).token).toBe('sandboxtoken');
});
