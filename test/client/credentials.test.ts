// @module-tag service
import { expect, it } from 'vitest';
import { verifyCredentials } from '../../src/client/credentials/credentials.ts';
import type { CredentialResult, CredentialSubmission } from '../../src/client/credentials/submission.ts';
import { connectTo, failure, golden, NEVER, type Reply, serve } from './connection.ts';

type Submitted = string | CredentialSubmission;

async function verified(submissions: Submitted[], reply: Reply | string): Promise<CredentialResult[]> {
  const { url } = await serve(() => reply);
  return await verifyCredentials(connectTo(url).caller, submissions, NEVER);
}

const refused = (...given: Parameters<typeof verified>) => failure(verified(...given));

function inRoot(...elements: string[]): string {
  return `<credentials>${elements.join('')}</credentials>`;
}

function credential(reference: string, more = ''): string {
  return `<credential reference="${reference}" guid="G-${reference}" access-token="t-${reference}" email="" ${more}/>`;
}

const byToken = (accessToken: string) => ({ accessToken });
const holder = (name: string) => `<credential guid="G-${name}" access-token="${name}"/>`;

it('credentials are read next to an empty list of errors', async () => {
  expect(await verified(['a'], inRoot(credential('a'), '<errors></errors>'))).toMatchObject([{ ok: true }]);
});

it('credentials keep attributes that the interface does not name', async () => {
  const [result] = await verified(['a'], inRoot(credential('a', 'email_verification_required="true"')));
  expect(result).toMatchObject({ ok: true, others: { email_verification_required: 'true' } });
});

it('credentials may come without their root element', async () => {
  expect(await verified(['a'], credential('a'))).toMatchObject([{ ok: true, reference: 'a' }]);
});

// @rule 7-6
it.each([
  [200, '<error code="603" message="no such reference"/>'],
  [404, '<error-response><error-code>603</error-code><error-text>no</error-text></error-response>'],
  [404, inRoot('<error code="603" message="no" reference="a" guid="" email=""/>')],
  [200, inRoot('<error><code>603</code><message>no</message></error>')],
  [603, ''],
])('credentials of one account that is refused with status %i and %s are a result', async (status, body) => {
  expect(await verified(['a'], { status, body })).toMatchObject([{ ok: false, code: 603, reference: 'a' }]);
});

it('credentials throw if the whole request is refused', async () => {
  expect(await refused(['a', 'b'], golden('error-650.xml'))).toMatchObject({
    code: 'SERVICE_INVALID',
    serviceCode: 650,
  });
  expect(await refused(['a'], { status: 400, body: golden('error-650.xml') })).toMatchObject({ serviceCode: 650 });
  expect(await refused(['a', 'b'], inRoot('<error code="470" message="x"/>'))).toMatchObject({ serviceCode: 470 });
  for (const submissions of [['a'], ['a', 'b']]) {
    const errors = submissions.map(() => '<error code="401" message="invalid api key"/>');
    expect(await refused(submissions, inRoot(...errors))).toMatchObject({ code: 'SOURCE_AUTH', serviceCode: 401 });
  }
  expect(await refused(['a'], { status: 403, body: '' })).toMatchObject({ code: 'SERVICE_FORBIDDEN', status: 403 });
  expect(await refused(['a'], '')).toMatchObject({ code: 'SERVICE_ERROR' });
});

it.each(['<message>The service is down</message>', '650: malformed'])(
  'credentials throw for another answer: %s',
  async (text) => {
    for (const submissions of [['a'], ['a', 'b']]) {
      for (const body of [inRoot(text), `<response>${text}</response>`]) {
        expect(await refused(submissions, body), body).toMatchObject({ code: 'SERVICE_ERROR', status: 200 });
      }
    }
  },
);

it('credentials throw if the answer is empty, without a token in the message', async () => {
  const error = await refused(['a', { accessToken: 'secrettoken' }], inRoot());
  expect(error).toMatchObject({ code: 'SERVICE_ERROR', status: 200 });
  expect(error.message).toContain('did not answer for any of the credentials 1 to 2');
  expect(error.message).not.toContain('secrettoken');
});

it('credentials in several lists have no places', async () => {
  const stale = '<list><error code="601" message="m"/></list>';
  const unclear = { ok: false, code: null };
  const moved = inRoot(holder('n1'), stale);
  expect(await verified([byToken('t0'), byToken('t1')], moved)).toMatchObject([unclear, unclear]);
});

it('credentials are read from child elements', async () => {
  const error = (code: number, reference: string) =>
    `<error><code>${code}</code><message>m</message><reference>${reference}</reference></error>`;
  const good =
    '<credential guid=""><reference>r0</reference><guid>G</guid><access-token>t</access-token><email>e</email><plan>x</plan></credential>';
  const results = await verified(['r0', 'r1', 'r2'], inRoot(error(603, 'r2'), error(601, 'r1'), good));
  expect(results).toMatchObject([
    { ok: true, reference: 'r0', guid: 'G', accessToken: 't', email: 'e', others: { plan: 'x' } },
    { code: 601 },
    { code: 603 },
  ]);
});

it('credentials of another spelling are unclear', async () => {
  const results = await verified(['User5', 'b'], inRoot(credential('user5'), credential('b')));
  expect(results).toMatchObject([{ ok: false, code: null, reference: 'User5' }, { ok: true }]);
});

// @rule 2.4-3, 4.3-5..6
it.each([
  ['an email', { email: 'a@example.com' }, '"email" cannot be submitted'],
  ['an email with a reference', { reference: 'a', email: 'a@example.com' }, '"email" cannot be submitted'],
  ['a password', { accessToken: 'a', password: 'b' }, '"password" cannot be submitted'],
  ['nothing', {}, 'it has no key'],
  ['an empty reference', { reference: ' ' }, 'its reference is empty'],
  ['an empty string', '', 'its reference is empty'],
  ['a number', { reference: 123 }, 'its reference is not a string'],
  ['a control character', 'a\u0000', 'its reference contains a character that XML cannot hold'],
  ['a lone surrogate', { guid: '\ud800' }, 'its guid contains a character that XML cannot hold'],
])('the submission matrix rejects %s before anything is sent', async (_name, submission, message) => {
  const { url, asked } = await serve(() => '');
  const submissions = ['a', submission as unknown as CredentialSubmission];
  const error = await failure(verifyCredentials(connectTo(url).caller, submissions, NEVER), 'a@example.com');
  expect(error).toMatchObject({ code: 'USAGE', message: `credential 2: ${message}` });
  expect(asked).toEqual([]);
});
