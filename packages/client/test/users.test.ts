// @module-tag service

import { createUsers } from 'catchword-client/users/users';
import { expect, it } from 'vitest';
import { connectTo, failure, golden, KEY, type Reply, serve, TOKEN, XML_TYPE } from './connection.ts';

async function usersOf(reply: Reply | string) {
  const { url, asked } = await serve(() => reply);
  return { users: createUsers(connectTo(url).caller, '.xml'), asked };
}

it('a user is read without .xml in the path', async () => {
  const { url, asked } = await serve(() => golden('user-full-response.xml'));
  expect(await createUsers(connectTo(url).caller, '').read('a b/c@d?e')).toMatchObject({ email: 'ada@example.com' });
  expect(asked[0]?.url).toBe('/v3/users/a%20b%2Fc%40d%3Fe');
});

// @rule 4.5-9
it('a user resets its access with both headers and no body', async () => {
  const { url, asked } = await serve(() => '');
  const { caller } = connectTo(url);
  await createUsers(caller, '.xml').reset();
  await createUsers(caller, '').reset();
  expect(asked.map((one) => one.url)).toEqual(['/v3/users/reset_access.xml', '/v3/users/reset_access']);
  expect(asked[0]).toMatchObject({ method: 'POST', body: '', headers: { 'x-key': KEY, 'x-token': TOKEN } });
});

it.each([
  ['', XML_TYPE],
  ['', 'text/html'],
  ['<user><guid>G</guid></user>', XML_TYPE],
  ['<user guid="G"/>', XML_TYPE],
  ['<response><user><access-token>t</access-token></user></response>', XML_TYPE],
  ['<guid>G</guid><access-token>t</access-token>', XML_TYPE],
])('a user has its access reset by an answer of %j', async (body, type) => {
  const { users, asked } = await usersOf({ body, headers: { 'content-type': type } });
  await users.reset();
  expect(asked).toHaveLength(1);
});

it('a user has its access reset once by a page for people', async () => {
  const { users, asked } = await usersOf({ body: '<html>OK</html>', headers: { 'content-type': 'text/html' } });
  const error = await failure(users.reset());
  expect(error).toMatchObject({ code: 'SOURCE_NOT_SERVICE', status: 200, retryable: false });
  expect(asked).toHaveLength(1);
});

it.each([
  [200, golden('error-474.xml'), { serviceCode: 474 }],
  [200, '{"errors":["no such user"]}', { code: 'SERVICE_ERROR' }],
  [404, 'no such user', { code: 'SOURCE_NOT_SERVICE', status: 404, hint: expect.stringMatching(/^Check /) }],
  [200, 'OK', { code: 'SERVICE_ERROR', hint: 'Check whether it was done before you retry.' }],
  [200, 'The token was reset', { code: 'SERVICE_ERROR' }],
  [200, '<status>200</status>', { code: 'SERVICE_ERROR' }],
  [200, '{"success":true}', { code: 'SERVICE_ERROR' }],
  [200, '{"success":false}', { code: 'SERVICE_ERROR' }],
  [200, '<response><success>false</success></response>', { code: 'SERVICE_ERROR' }],
  [200, '<response><status>error</status></response>', { code: 'SERVICE_ERROR' }],
  [200, '<error/>', { code: 'SERVICE_ERROR' }],
  [200, '<user><guid>G</guid><error/></user>', { code: 'SERVICE_ERROR' }],
  [200, '<fault><faultstring>down</faultstring></fault>', { code: 'SERVICE_ERROR' }],
  [200, '<response><status>601</status></response>', { code: 'SERVICE_ERROR' }],
])('a user does not have its access reset by an error: %i %s', async (status, body, expected) => {
  const { users } = await usersOf({ status, body });
  expect(await failure(users.reset())).toMatchObject(expected);
});
