// @module-tag service

import { createNumbering } from '@catchword/sandbox/catalog/product-numbers';
import type { Sandbox } from '@catchword/sandbox/sandbox-server';
import { itWith, sandboxFor } from '@catchword/testing/sandbox-for';
import { expect } from 'vitest';
import { attributesOf, callerHeaders, control, errorOf, exchange, outcomes, rootOf, verify } from './exchange.ts';

const it = itWith({ items: 0 });

function create(sandbox: Sandbox, elements: string, path = '/v3/users.xml' as const) {
  return exchange(sandbox, `POST ${path}`, `<user>${elements}</user>`, callerHeaders(null));
}

async function fieldsOf(answer: ReturnType<typeof exchange>): Promise<Record<string, string>> {
  const { children } = rootOf(await answer);
  return Object.fromEntries(children.map(({ name, text }) => [name, text]));
}

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
    return (await create(sandbox, '<email>a@example.com</email><password>p</password>')).text;
  };
  expect(await make()).toBe(await make());
});

// @rule 4.3-10, 4.5-9, 5-7
it.each(['/v3/users/reset_access.xml', '/v3/users/reset_access'] as const)(
  '4.3 rule 4, 4.5: after POST %s, verify returns the same user with the new token',
  async (path) => {
    const sandbox = await sandboxFor({ items: 0 });
    const before = await attributesOf(sandbox, 'sandbox-reader');
    const answer = await exchange(sandbox, `POST ${path}`);
    expect([before.token, errorOf(answer)]).toEqual(['sandboxtoken', null]);
    const after = await attributesOf(sandbox, 'sandbox-reader');
    expect(after).toEqual({ ...before, token: expect.stringMatching(/^[0-9a-z]{34}$/) });
    // Only verify returns the new token, not the reset.
    expect(answer.text).not.toContain(after.token);
    expect(outcomes(await verify(sandbox, '<credential access-token="sandboxtoken"/>'))).toEqual(['601']);
    expect(outcomes(await verify(sandbox, `<credential access-token="${after.token}"/>`))).toEqual(['sandbox-reader']);
    expect(errorOf(await exchange(sandbox, 'GET /v3/licenses.xml', null, callerHeaders(after.token)))).toBeNull();
  },
);
