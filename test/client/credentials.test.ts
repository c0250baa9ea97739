import { describe, expect, it } from 'vitest';
import { verifyCredentials } from '../../src/client/credentials/credentials.ts';
import type { CredentialResult, CredentialSubmission } from '../../src/client/credentials/submission.ts';
import { connectTo, failure, golden, KEY, NEVER, type Reply, serve } from './connection.ts';

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

describe('credentials', () => {
  const submissions: Submitted[] = [
    'reader-1',
    { guid: '7Q2M9XW4TZ1B5N8C3DGK' },
    { accessToken: 'k3m9v7q2x8w4t6z1b5n0c3d7g2h8j4p6' },
    { reference: 'reader-1', accessToken: 'f7d2k9s4m1x8q3w6v5t0z2b7n4c9g1h3' },
    'Tom & "Jerry" <é>',
    'unknown & co',
    { accessToken: 'a0a1a2a3a4a5a6a7a8a9b0b1b2b3b4b5' },
  ];

  // @rule 2.4-1, 4.3-1..6, 4.3-9..10, 7-5, 9-3
  it('match the hand-written example of the interface', async () => {
    const { url, asked } = await serve(() => golden('credentials-response.xml'));
    const results = await verifyCredentials(connectTo(url).caller, submissions, NEVER);
    expect(asked).toHaveLength(1);
    expect(asked[0]?.body).toBe(golden('credentials-request.xml'));
    expect(asked[0]).toMatchObject({ method: 'POST', url: '/v3/credentials.xml', headers: { 'x-key': KEY } });
    expect(asked[0]?.headers['content-type']).toBe('application/xml; charset=utf-8');
    expect(asked[0]?.headers['x-token']).toBeUndefined();
    expect(results.map((one) => [one.ok, one.reference, one.ok ? one.accessToken : one.code])).toEqual([
      [true, 'reader-1', 'f7d2k9s4m1x8q3w6v5t0z2b7n4c9g1h3'],
      [true, null, 'p6j4h8g2d7c3n0b5z1t6w4x8q2v7m9k3'],
      [true, 'reader-2', 'k3m9v7q2x8w4t6z1b5n0c3d7g2h8j4p6'],
      [true, 'reader-1', 'f7d2k9s4m1x8q3w6v5t0z2b7n4c9g1h3'],
      [true, 'Tom & "Jerry" <é>', 'z1b5n0c3d7g2h8j4p6k3m9v7q2x8w4t6'],
      [false, 'unknown & co', 603],
      [false, null, 601],
    ]);
    expect(results[0]).toMatchObject({ guid: '4T6Z1B5N0C3D7G2H8J4P', email: 'reader-1@example.com', others: {} });
    expect(results[5]).toMatchObject({ message: expect.stringContaining('reference') as string });
  });

  it('are matched by their keys in any order', async () => {
    const elements = [credential('c'), '<error code="603" message="no" reference="b"/>', credential('a')];
    const results = await verified(['a', 'b', { reference: 'c' }], inRoot(...elements));
    expect(results.map((one) => [one.ok, one.reference])).toEqual([
      [true, 'a'],
      [false, 'b'],
      [true, 'c'],
    ]);
  });

  it('may be repeated: the first counts', async () => {
    const again = '<credential reference="a" guid="other" access-token="other" email=""/>';
    const results = await verified(['a', 'b'], inRoot(credential('a'), again, credential('b')));
    expect(results).toMatchObject([{ guid: 'G-a' }, { guid: 'G-b' }]);
  });

  it('that are submitted twice get two results, answered once or twice', async () => {
    for (const elements of [[credential('a')], [credential('a'), credential('a')]]) {
      expect(await verified(['a', 'a'], inRoot(...elements))).toMatchObject([{ guid: 'G-a' }, { guid: 'G-a' }]);
    }
  });

  const byToken = (accessToken: string) => ({ accessToken });
  const holder = (name: string) => `<credential guid="G-${name}" access-token="${name}"/>`;

  it('that are repeated without a reference do not go to another account', async () => {
    const error = '<error code="601" message="stale"/>';
    const tokens = ['x', 'y', 'z'].map(byToken);
    for (const order of ['xyx', 'xyy', 'xxy']) {
      const results = await verified(tokens, inRoot(...order.split('').map(holder)));
      expect(results, order).toMatchObject([{ guid: 'G-x' }, { guid: 'G-y' }, { ok: false, code: null, guid: null }]);
    }
    const guids = ['G-x', 'G-y', 'G-z'].map((guid) => ({ guid }));
    for (const [submissions, orders] of [
      [tokens, ['xy', 'xxyy']],
      [guids, ['xxy', 'xyx', 'xyy', 'xxyy']],
    ] as const) {
      for (const order of orders) {
        const results = await verified(submissions, inRoot(...order.split('').map(holder)));
        expect(results, order).toMatchObject([{ guid: 'G-x' }, { guid: 'G-y' }, { ok: false, code: null }]);
      }
      const results = await verified(submissions, inRoot(holder('x'), holder('x'), holder('y'), error));
      expect(results).toMatchObject([{ guid: 'G-x' }, { guid: 'G-y' }, { ok: false, code: 601 }]);
    }
    // New tokens: the answer has no submitted key.
    const unclear = { ok: false, code: null, guid: null };
    const fresh = inRoot(holder('n'), holder('n'), holder('m'));
    expect(await verified(tokens, fresh)).toMatchObject([unclear, unclear, unclear]);
    const more = inRoot(holder('n'), holder('n'), holder('m'), holder('o'));
    expect(await verified(tokens, more)).toMatchObject([{ guid: 'G-n' }, { guid: 'G-m' }, { guid: 'G-o' }]);
  });

  it('of one user under two keys both get their result, one for a stale token', async () => {
    const good = credential('r');
    const stale = '<error code="601" message="stale" reference="r" guid="G-r"/>';
    const other = credential('s');
    const isGood = { ok: true, accessToken: 't-r' };
    const isStale = { ok: false, code: 601 };
    expect(await verified(['r', byToken('x'), 's'], inRoot(good, stale, other))).toMatchObject([isGood, isStale, {}]);
    expect(await verified([byToken('x'), 'r', 's'], inRoot(stale, good, other))).toMatchObject([isStale, isGood, {}]);
    // The second credential could be a repetition, and the token left out.
    const unclear = { ok: false, code: null, reference: null, guid: null };
    expect(await verified(['r', byToken('x'), 's'], inRoot(good, good, other))).toMatchObject([isGood, unclear, {}]);
    const twice = await verified([byToken('x'), byToken('y'), 's'], inRoot(stale, stale, other));
    expect(twice).toMatchObject([unclear, unclear, { ok: true, reference: 's' }]);
  });

  it('are read next to an empty list of errors', async () => {
    expect(await verified(['a'], inRoot(credential('a'), '<errors></errors>'))).toMatchObject([{ ok: true }]);
  });

  it('without keys are matched by place, errors included, if the answer is in order', async () => {
    const fresh = '<credential guid="G" access-token="new" reference=""/>';
    const stale = '<error code="601" message="stale" reference="" guid="" email=""></error>';
    const submissions = [byToken('x'), byToken('y'), 'r'];
    const results = await verified(submissions, inRoot(fresh, stale, credential('r')));
    expect(results).toMatchObject([{ accessToken: 'new' }, { code: 601 }, { reference: 'r', guid: 'G-r' }]);
    const moved = await verified(submissions, inRoot(credential('r'), fresh, stale));
    expect(moved).toMatchObject([{ ok: false, code: null }, { ok: false, code: null }, { reference: 'r' }]);
  });

  it('do not go to a stale token that was submitted twice', async () => {
    const twice = inRoot(credential('r'), '<error code="601" message="stale"/>', credential('r'));
    const results = await verified([byToken('x'), 'r', byToken('x')], twice);
    expect(results).toMatchObject([{ ok: false }, { ok: true, reference: 'r' }, { ok: false }]);
    const one = inRoot(credential('r'), credential('r'));
    expect(await verified([byToken('x'), byToken('x')], one)).toMatchObject([{ guid: 'G-r' }, { guid: 'G-r' }]);
  });

  it('of one user under a guid and a token do not go to another token', async () => {
    const own = '<credential guid="G-0" access-token="new-0"/>';
    const elements = inRoot(own, own, '<credential guid="G-2" access-token="new-2"/>');
    const results = await verified([{ guid: 'G-0' }, byToken('x'), byToken('y')], elements);
    expect(results).toMatchObject([
      { ok: true, guid: 'G-0' },
      { ok: false, code: null },
      { ok: false, code: null },
    ]);
  });

  it('are not hidden by an error for the same user', async () => {
    const stale = '<error code="601" message="stale" reference="r" guid="G-r"/>';
    const results = await verified([byToken('x'), { guid: 'G-r' }], inRoot(stale, credential('r')));
    expect(results).toMatchObject([{ code: 601 }, { ok: true, guid: 'G-r' }]);
    const both: Submitted = { reference: 'r', accessToken: 'x' };
    expect(await verified([both, 's'], inRoot(stale, credential('r')))).toMatchObject([
      { ok: true, guid: 'G-r' },
      { ok: false, code: null },
    ]);
  });

  it('keep attributes that the interface does not name', async () => {
    const [result] = await verified(['a'], inRoot(credential('a', 'email_verification_required="true"')));
    expect(result).toMatchObject({ ok: true, others: { email_verification_required: 'true' } });
  });

  it('may come without their root element', async () => {
    expect(await verified(['a'], credential('a'))).toMatchObject([{ ok: true, reference: 'a' }]);
  });

  // @rule 7-6
  it.each([
    [200, '<error code="603" message="no such reference"/>'],
    [404, '<error-response><error-code>603</error-code><error-text>no</error-text></error-response>'],
    [404, inRoot('<error code="603" message="no" reference="a" guid="" email=""/>')],
    [200, inRoot('<error><code>603</code><message>no</message></error>')],
    [603, ''],
  ])('of one account that is refused with status %i and %s are a result', async (status, body) => {
    expect(await verified(['a'], { status, body })).toMatchObject([{ ok: false, code: 603, reference: 'a' }]);
  });

  it('throw if the whole request is refused', async () => {
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
    'throw for another answer: %s',
    async (text) => {
      for (const submissions of [['a'], ['a', 'b']]) {
        for (const body of [inRoot(text), `<response>${text}</response>`]) {
          expect(await refused(submissions, body), body).toMatchObject({ code: 'SERVICE_ERROR', status: 200 });
        }
      }
    },
  );

  it('without an answer are refused alone', async () => {
    const unclear = { ok: false, code: null, message: expect.stringContaining('does not show') as string };
    const results = await verified(['a', 'b', 'c'], inRoot(credential('a'), credential('c')));
    expect(results).toMatchObject([{ ok: true }, { ...unclear, reference: 'b', guid: null }, { ok: true }]);
    expect(await verified(['a'], inRoot(credential('b')))).toMatchObject([unclear]);
    const other = { reference: 'a', guid: 'G-other' };
    for (const more of [[], [credential('c')]]) {
      const answered = inRoot(credential('b'), credential('a'), ...more);
      expect(await verified([other, 'b'], answered)).toMatchObject([unclear, { ok: true, guid: 'G-b' }]);
    }
    const stray = inRoot(credential('b'), '<error code="603" message="no" reference="c"/>');
    expect(await verified(['a', 'b'], stray)).toMatchObject([unclear, { ok: true, guid: 'G-b' }]);
  });

  it('throw if the answer is empty, without a token in the message', async () => {
    const error = await refused(['a', { accessToken: 'secrettoken' }], inRoot());
    expect(error).toMatchObject({ code: 'SERVICE_ERROR', status: 200 });
    expect(error.message).toContain('did not answer for any of the credentials 1 to 2');
    expect(error.message).not.toContain('secrettoken');
  });

  it('do not go to another account if errors come first or last', async () => {
    const submissions: Submitted[] = ['r0', byToken('t1'), byToken('t2')];
    const full = (name: string) => `<credential reference="" guid="g${name}" access-token="n${name}" email=""/>`;
    const error = '<error code="603" message="m" reference="r0" guid="" email=""></error>';
    const unclear = { ok: false, code: null };
    for (const elements of [
      [full('1'), full('2'), error],
      [error, error, full('1')],
    ]) {
      expect(await verified(submissions, inRoot(...elements))).toMatchObject([{ code: 603 }, unclear, unclear]);
    }
    const first = inRoot(error, full('1'), full('2'));
    expect(await verified(submissions.toReversed(), first)).toMatchObject([unclear, unclear, { code: 603 }]);
    const repeated = inRoot(...Array<string>(2).fill('<error code="601" message="m" guid="g0"/>'));
    expect(await verified([byToken('t0'), 'r1'], repeated)).toMatchObject([unclear, unclear]);
  });

  it('in several lists have no places', async () => {
    const stale = '<list><error code="601" message="m"/></list>';
    const unclear = { ok: false, code: null };
    const moved = inRoot(holder('n1'), stale);
    expect(await verified([byToken('t0'), byToken('t1')], moved)).toMatchObject([unclear, unclear]);
  });

  it('are read from child elements', async () => {
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

  it('of another spelling are unclear', async () => {
    const results = await verified(['User5', 'b'], inRoot(credential('user5'), credential('b')));
    expect(results).toMatchObject([{ ok: false, code: null, reference: 'User5' }, { ok: true }]);
  });
});

describe('the submission matrix', () => {
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
  ])('rejects %s before anything is sent', async (_name, submission, message) => {
    const { url, asked } = await serve(() => '');
    const submissions = ['a', submission as unknown as CredentialSubmission];
    const error = await failure(verifyCredentials(connectTo(url).caller, submissions, NEVER), 'a@example.com');
    expect(error).toMatchObject({ code: 'USAGE', message: `credential 2: ${message}` });
    expect(asked).toEqual([]);
  });
});
