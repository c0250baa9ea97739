// @module-tag service
import { expect, it } from 'vitest';
import { createUsers, type NewUser } from '../../src/client/users/users.ts';
import { connectTo, failure, golden, KEY, type Reply, serve, TOKEN, XML_TYPE } from './connection.ts';

const FULL: NewUser = {
  email: 'ada@example.com',
  password: 'correct <horse>',
  firstName: 'Ada',
  lastName: 'Abernathy',
};
const REFERENCE: NewUser = { reference: 'pupil-7', firstName: 'Élodie', lastName: 'Dubois & Fils' };

async function usersOf(reply: Reply | string) {
  const { url, asked } = await serve(() => reply);
  return { users: createUsers(connectTo(url).caller, '.xml'), asked };
}

async function creating(user: NewUser, reply: Reply | string) {
  const { users, asked } = await usersOf(reply);
  return { created: users.create(user), asked };
}

it('a user may have further fields, sent and returned unchanged', async () => {
  const { created, asked } = await creating(
    { ...REFERENCE, others: { 'survey-option': 'true' } },
    '<user guid="G"><survey-option>true</survey-option><last-name/></user>',
  );
  expect(await created).toMatchObject({ guid: 'G', lastName: null, others: { 'survey-option': 'true' } });
  expect(asked[0]?.body).toContain('</last-name><survey-option>true</survey-option></user>');
});

it.each([
  [{ ...REFERENCE, email: 'a@example.com' }, 'either a reference, or an email and a password'],
  [{ ...FULL, password: undefined }, 'password: missing, must be a text'],
  [{ ...FULL, email: ' ' }, 'email: " " is not valid, must not be empty'],
  [{ ...REFERENCE, firstName: '' }, 'firstName: "" is not valid, must not be empty'],
  [{ ...REFERENCE, others: { guid: 'x' } }, 'must be given by its own field'],
  [{ ...REFERENCE, others: { 'a b': 'x' } }, 'must be a name of an XML element'],
])('the user %j is rejected before anything is sent', async (user, message) => {
  const { created, asked } = await creating(user as NewUser, '');
  const error = await failure(created);
  expect(error).toMatchObject({ code: 'USAGE', message: expect.stringContaining(message) as string });
  expect(asked).toEqual([]);
});

it('a user whose password the service repeats is an error without it', async () => {
  const said = '<error code="468" message="no: correct &lt;horse&gt; is too weak"/>';
  for (const reply of [said, { status: 422, body: said }, { status: 422, body: '"correct <horse> is too weak"' }]) {
    const { created } = await creating(FULL, reply);
    const error = await failure(created, 'correct <horse>', 'correct &lt;horse&gt;');
    expect(error.message).toContain('[secret] is too weak');
  }
});

it.each([
  [200, '<user><error code="469" message="redeemed"/></user>', { serviceCode: 469 }],
  [200, golden('error-469.xml'), { serviceCode: 469 }],
  [200, '<nothing/>', { code: 'SERVICE_ERROR' }],
  [200, '<user/>', { code: 'SERVICE_ERROR', message: expect.stringContaining('without user') as string }],
  [200, '<user><first-name>Ada</first-name></user>', { code: 'SERVICE_ERROR' }],
  [200, '<user code="601" message="bad" reference="x"/>', { code: 'SERVICE_ERROR' }],
  [200, '<user><code>470</code><description>failed</description></user>', { code: 'SERVICE_ERROR' }],
  [200, '<user><guid>G</guid><errors><error code="470"/></errors></user>', { serviceCode: 470 }],
  [200, '<guid>G</guid><error code="470"/>', { serviceCode: 470 }],
  ...['response', 'users', 'data'].map((root): [number, string, object] => [
    200,
    `<${root}><user><guid>G</guid></user><error code="470"/></${root}>`,
    { serviceCode: 470 },
  ]),
  [404, golden('error-474.xml'), { code: 'SERVICE_UNKNOWN_USER', serviceCode: 474, status: 404 }],
])('a user that is answered with %i %s is an error', async (status, body, expected) => {
  const { users } = await usersOf({ status, body });
  expect(await failure(users.read('x'))).toMatchObject(expected);
});

it.each([
  '<user><message>email is already taken</message></user>',
  '<message>email is already taken</message>',
  '<response><message>email is already taken</message></response>',
  '<user message="email is already taken"/>',
  '<user>email is already taken</user>',
])('a user that is answered with a message only is an error: %s', async (body) => {
  const { created } = await creating(REFERENCE, body);
  const error = await failure(created);
  expect(error).toMatchObject({ code: 'SERVICE_ERROR', status: 200, retryable: false });
  expect(error.message).toContain('answered without user: ');
  expect(error.hint).toMatch(/^Look for it before you retry/);
});

it.each([
  '<response><account><guid>g1</guid><access-token>abcdefghij</access-token><email>ada@x.org</email></account></response>',
  '<User><token>abcdefghij</token><value>abcdefghij</value><login>ada@x.org</login></User>',
  '<user><first-name>Ada</first-name><session token="abcdefghij">abcdefghij</session></user>',
  '<token>abcdefghij</token><login email="ada@x.org"/>',
])('a user that is not recognized is an error with names, and without token or email: %s', async (body) => {
  const { created } = await creating(REFERENCE, body);
  const error = await failure(created, 'abcdefghij', 'ada@x.org');
  expect(error).toMatchObject({ code: 'SERVICE_ERROR', status: 200 });
  expect(error.message).toMatch(/without user: .*(?:token|session|account)/);
});

it('a user together with an error is named, without its token', async () => {
  const failed = '<error code="469" message="redeemed"/>';
  const body = `<response><user><guid>G7</guid><access-token>abcdefghij</access-token></user>${failed}</response>`;
  const error = await failure((await creating(REFERENCE, body)).created, 'abcdefghij');
  expect(error).toMatchObject({ code: 'SERVICE_ERROR', serviceCode: 469, retryable: false });
  expect(error.message).toContain('guid G7 may exist');
  expect(error.hint).toContain('G7');
  const { users } = await usersOf(body);
  expect((await failure(users.read('x'))).message).not.toContain('G7');
});

it.each([
  ['', XML_TYPE],
  ['Created', 'text/plain'],
  ['<response><status>success</status></response>', XML_TYPE],
  ['{"user":{"reference":"x"}}', 'application/json'],
])('a user may exist if it is not in the answer: %s', async (body, type) => {
  const reply = { status: 201, headers: { 'content-type': type }, body };
  const error = await failure((await creating(REFERENCE, reply)).created);
  expect(error).toMatchObject({ code: 'SERVICE_ERROR', retryable: false });
  expect(error.hint).toBe('Look for it before you retry: it may have been created.');
  const { users } = await usersOf(reply);
  expect((await failure(users.read('x'))).hint).not.toContain('created');
});

it.each([
  '<user><guid>G</guid><access-token>t</access-token><errors/></user>',
  ...['response', 'users', 'data'].map(
    (root) => `<${root}><status>200</status><user><guid>G</guid><access-token>t</access-token></user></${root}>`,
  ),
])('a user is found in %s', async (body) => {
  expect(await (await creating(REFERENCE, body)).created).toMatchObject({ guid: 'G', accessToken: 't' });
});

it('a user is read from an answer without the root', async () => {
  const { users } = await usersOf('<guid>G</guid><reference>x</reference><role>pupil</role>');
  const user = await users.read('x');
  expect(user).toMatchObject({ guid: 'G', reference: 'x', others: { role: 'pupil' } });
});

it.each([
  [golden('user-reference-response.xml'), 'another user'],
  ['<users><user><guid>x</guid></user><user><guid>G</guid></user></users>', '2 users'],
])('a user is not taken from an answer about others: %s', async (body, found) => {
  const { users } = await usersOf(body);
  const error = await failure(users.read('x'));
  expect(error).toMatchObject({ code: 'SERVICE_ERROR', status: 200 });
  expect(error.message).toContain(`answered with ${found} instead of the one asked for`);
});

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
  [404, 'no such user', { code: 'SOURCE_NOT_SERVICE', status: 404 }],
  [200, 'OK', { code: 'SERVICE_ERROR', hint: 'Check whether it was done before you retry.' }],
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
