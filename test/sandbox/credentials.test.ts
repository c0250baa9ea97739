// @module-tag service
import { expect } from 'vitest';
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

// @rule 4.3-10
it('4.3 rule 4: the sandbox returns the current token and guid', async ({ sandbox }) => {
  const before = await attributesOf(sandbox, 'sandbox-reader');
  expect(before.token).toBe('sandboxtoken');
  expect((await exchange(sandbox, 'POST /v3/users/reset_access.xml')).status).toBe(200);
  const after = await attributesOf(sandbox, 'sandbox-reader');
  expect(after).toEqual({ ...before, token: expect.stringMatching(/^[0-9a-z]{34}$/) });
  expect(rootOf(await exchange(sandbox, 'GET /v3/licenses.xml', null, callerHeaders(after.token))).name).toBe(
    'licenses',
  );
});

// @rule 4.3-5
it('4.3: the sandbox verifies reference users by token, reference, guid or any combination', async ({ sandbox }) => {
  const { guid, token } = await attributesOf(sandbox, 'user-0000002');
  const [reference, byGuid, byToken] = ['reference="user-0000002"', `guid="${guid}"`, `access-token="${token}"`];
  const combinations = [
    reference,
    byGuid,
    byToken,
    `${reference} ${byGuid}`,
    `${reference} ${byToken}`,
    `${byGuid} ${byToken}`,
    `${reference} ${byGuid} ${byToken}`,
    `${reference} guid="" access-token=""`,
    `${reference} other="x"`,
  ];
  const asked = combinations.map((attributes) => `<credential ${attributes}/>`).join('');
  expect(outcomes(await verify(sandbox, asked))).toEqual(combinations.map(() => 'user-0000002'));
});

// @rule 2.4-3, 4.3-6
it('4.3: the sandbox verifies full users by token or guid, and rejects email and password', async ({ sandbox }) => {
  const user = { email: 'full@example.com', guid: 'FULLUSER', access_token: 'fulltoken' };
  await control(sandbox, 'user', user);
  const answer = await verify(
    sandbox,
    '<credential access-token="fulltoken"/><credential guid="FULLUSER"/><credential email="full@example.com"/>' +
      '<credential guid="FULLUSER" password="x"/><credential/>',
  );
  expect(outcomes(answer)).toEqual(['', '', '650', '650', '650']);
  const [first, , third] = rootOf(answer).children;
  expect(Object.fromEntries(first?.attributes ?? [])).toEqual({
    email: 'full@example.com',
    'access-token': 'fulltoken',
    guid: 'FULLUSER',
    reference: '',
  });
  expect(third?.attributes.get('message')).toMatch(/email is not submitted/);
});

it('the sandbox rejects attributes that name two users', async ({ sandbox }) => {
  const { guid, token } = await attributesOf(sandbox, 'user-0000002');
  const answer = await verify(
    sandbox,
    `<credential reference="user-0000001" guid="${guid}"/><credential reference="user-0000001" access-token="${token}"/>` +
      `<credential reference="unknown" access-token="${token}"/>`,
  );
  expect(outcomes(answer)).toEqual(['603', '603', '603']);
});

// @rule 7-5..6
it('7: the sandbox replaces a credential by 601 for a stale token, by 603 for an unknown reference', async ({
  sandbox,
}) => {
  const { token } = await attributesOf(sandbox, 'user-0000004');
  await control(sandbox, 'expire', { reference: 'user-0000004' });
  const answer = await verify(
    sandbox,
    `<credential access-token="${token}"/><credential reference="user-0000004"/><credential reference="unknown"/>` +
      `<credential reference="user-0000004" access-token="${token}"/><credential reference="user-0000005" access-token="x"/>`,
  );
  expect(answer.status).toBe(200);
  expect(outcomes(answer)).toEqual(['601', 'user-0000004', '603', '601', '601']);
  const current = (await attributesOf(sandbox, 'user-0000004')).token;
  expect(current).not.toBe(token);
  expect(outcomes(await verify(sandbox, `<credential access-token="${current}"/>`))).toEqual(['user-0000004']);
});

it('the sandbox does not repeat the token in an error', async ({ sandbox }) => {
  const { text } = await verify(sandbox, '<credential access-token="s3cr3t" guid="G" reference="unknown"/>');
  expect(text).toMatch(/<error code="603" [^>]*reference="unknown" guid="G" email=""><\/error>/);
  expect(text).not.toMatch(/s3cr3t/);
});

// @rule 4.3-2, 4.3-8, 5-6
it('4.3 rule 2: the sandbox does not verify users of another key, in either direction', async ({ sandbox }) => {
  for (const [keys, key] of [
    ['reference="user-0000001"', 'OTHERKEY'],
    ['access-token="sandboxtoken"', 'OTHERKEY'],
    ['reference="other-user-0000001"', 'SANDBOXKEY'],
    ['access-token="othersandboxtoken"', 'SANDBOXKEY'],
  ] as const) {
    expect([keys, outcomes(await verify(sandbox, `<credential ${keys}/>`, key))]).toEqual([keys, ['603']]);
  }
  const own = await verify(
    sandbox,
    '<credential reference="other-user-0000001"/><credential access-token="othersandboxtoken"/>',
    'OTHERKEY',
  );
  expect(outcomes(own)).toEqual(['other-user-0000001', 'other-reader']);
  const guid = rootOf(own).children[0]?.attributes.get('guid');
  expect(outcomes(await verify(sandbox, `<credential guid="${guid}"/>`))).toEqual(['603']);
});

// @rule 4.3-7, 8-1
it('8: the sandbox accepts up to 10,000 records in a request, in order', { tags: ['slow'] }, async () => {
  const sandbox = await sandboxFor({ items: 0, users: 20_000 });
  const references = Array.from({ length: 10_000 }, (_, at) => `user-${String(20_000 - at).padStart(7, '0')}`);
  const asked = references.map((reference) => `<credential reference="${reference}"/>`);
  expect(outcomes(await verify(sandbox, asked.join('')))).toEqual(references);
  // End tags double the number of tags.
  const ended = references.map((reference) => `<credential reference="${reference}"></credential>`);
  expect(outcomes(await verify(sandbox, ended.join('')))).toEqual(references);
  expect(errorOf(await verify(sandbox, `${asked.join('')}${asked[0]}`))).toEqual([400, '650']);
});

// @rule 4.3-3
it.for([
  ['no body', ''],
  ['no credentials', '<credentials/>'],
  ['another root', '<credential reference="user-0000001"/>'],
  ['two roots', '<credentials><credential reference="a"/></credentials><credentials/>'],
  ['other elements', '<credentials><credential reference="a"/><user/></credentials>'],
  ['no XML', '{"credentials":[]}'],
  ['an open tag', '<credentials><credential reference="a"></credentials>'],
  ['an attribute twice', '<credentials><credential reference="a" reference="b"/></credentials>'],
] as const)('the sandbox rejects credentials of %s with 650 and status 400', async ([, body], { sandbox }) => {
  const answer = await exchange(sandbox, 'POST /v3/credentials.xml', body);
  expect(errorOf(answer)).toEqual([400, '650']);
  expect(messageOf(answer)).toMatch(/^Malformed credentials request: /);
});

it('8: the sandbox accepts 10,000 long references of three bytes a character', { tags: ['slow'] }, async ({
  sandbox,
}) => {
  const many = Array.from({ length: 10_000 }, (_, at) => `<credential reference="${String(at).padStart(244, '書')}"/>`);
  const body = `<credentials>${many.join('')}</credentials>`;
  expect(Buffer.byteLength(body)).toBeGreaterThan(6 * 2 ** 20);
  const answer = await exchange(sandbox, 'POST /v3/credentials.xml', body);
  expect([answer.status, answer.text.split('code="603"').length - 1]).toEqual([200, 10_000]);
});

// @rule 4.3-2
it('the sandbox requires the API key, but no access token', async ({ sandbox }) => {
  const body = '<credentials><credential reference="user-0000001"/></credentials>';
  const status = async (headers: Record<string, string>) =>
    (await exchange(sandbox, 'POST /v3/credentials.xml', body, headers)).status;
  expect(await status({})).toBe(401);
  expect(await status(callerHeaders(null, 'WRONG'))).toBe(403);
  expect(await status(callerHeaders('a token that never was'))).toBe(200);
});
