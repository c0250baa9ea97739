// @module-tag service
import { env } from 'node:process';
import { CatchwordError } from '@catchword/base/errors';
import type { XmlElement } from '@catchword/xml/read';
import { credentialResults } from 'catchword-client/credentials/results';
import type { CredentialResult, CredentialSubmission } from 'catchword-client/credentials/submission';
import fc from 'fast-check';
import { expect, it } from 'vitest';

/*
 * No account gets the credential, code or message of another, whatever the service leaves out, repeats or reorders. The
 * client relies on these, because an answer that breaks them looks like one that does not:
 *
 * - The keys of an element are keys of its account.
 * - An element without a submitted key is not moved; or errors come first or last, with their submitted keys; or nothing is
 *   left out and there is only one such element. An error without any key comes once.
 * - Submissions that share a key are answered alike: both verified or both refused, with the same keys. So are those whose
 *   keys are in one credential.
 * - Only a submission of two keys, none of them a valid token, gets both a credential and an error, each with a submitted key.
 *
 * Three examples that cannot be detected: `t0, t1` answered with the new tokens of 1 and 0; `t0, t1` answered with the error
 * of 0 twice, without keys, and nothing for 1; `r0, g0, t1` answered with the credential of `r0` twice, the first with `g0`
 * in it, then the error of `g0` without a key, and nothing for `t1`.
 */

type Key = 'reference' | 'guid' | 'accessToken';

interface Asked {
  readonly account: number;
  readonly keys: readonly Key[];
  /** The submitted token is not the valid one. */
  readonly isOld: boolean;
  readonly isRefused: boolean;
  readonly code: string;
  /** Which keys the answer has, submitted or not; the token is that of an error. */
  readonly says: Readonly<Record<Key, boolean>>;
  /** Verified by one of two keys, it has an error too: the token submitted with a reference may be stale. */
  readonly hasErrorToo: boolean;
  readonly isLeftOut: boolean;
  readonly copies: number;
  readonly rank: number;
}

const KEYS = [['reference'], ['guid'], ['accessToken'], ['reference', 'accessToken'], ['reference', 'guid']] as const;
const asked: fc.Arbitrary<Asked> = fc.record({
  account: fc.nat({ max: 3 }),
  keys: fc.constantFrom(...KEYS),
  isOld: fc.boolean(),
  isRefused: fc.boolean(),
  code: fc.constantFrom('601', '603', '474'),
  says: fc.record({ reference: fc.boolean(), guid: fc.boolean(), accessToken: fc.boolean() }),
  hasErrorToo: fc.constantFrom(false, false, true),
  isLeftOut: fc.constantFrom(false, false, true),
  copies: fc.constantFrom(1, 1, 1, 2, 3),
  rank: fc.nat({ max: 100 }),
});

function says(one: Asked): string {
  return JSON.stringify([one.isRefused, one.says]);
}

/** Submissions with a common key are answered alike, and a verified one has no key of a refused one. */
function isAnsweredAlike(all: readonly Asked[]): boolean {
  return all.every((one) =>
    all.every((other) => {
      const keys = valuesOf(other);
      if (valuesOf(one).some((key) => keys.includes(key)) && says(one) !== says(other)) return false;
      return one.isRefused || !other.isRefused || !valuesIn(elementOf(one, false)).some((key) => keys.includes(key));
    }),
  );
}

const batch = fc.array(asked, { minLength: 1, maxLength: 6 }).filter(isAnsweredAlike);

function keyValue(key: Key, { account, isOld }: Asked): string {
  return key === 'accessToken' && isOld ? `old-${account}` : `${key}-${account}`;
}

function submissionOf(one: Asked): CredentialSubmission {
  return Object.fromEntries(one.keys.map((key) => [key, keyValue(key, one)])) as unknown as CredentialSubmission;
}

function valuesOf(one: Asked): string[] {
  return one.keys.map((key) => keyValue(key, one));
}

const NAMES = { reference: 'reference', guid: 'guid', accessToken: 'access-token' } as const;

/** @param isKeyed whether it has all submitted keys */
function elementOf(one: Asked, isKeyed: boolean): XmlElement {
  const { account, isRefused, keys, says, code } = one;
  const said = (['reference', 'guid', 'accessToken'] as const).filter(
    (key) => says[key] || (isKeyed && keys.includes(key)),
  );
  const attributes = new Map<string, string>(said.map((key) => [NAMES[key], keyValue(key, one)]));
  if (!isRefused) attributes.set('access-token', `accessToken-${account}`);
  // The token of an error is the one that was submitted.
  else if (!keys.includes('accessToken')) attributes.delete('access-token');
  if (isRefused) attributes.set('code', code);
  attributes.set(isRefused ? 'message' : 'email', `${account}`);
  return { name: isRefused ? 'error' : 'credential', attributes, children: [], text: '' };
}

function secondOf({ account }: Asked): XmlElement {
  const attributes = new Map([
    ['reference', `reference-${account}`],
    ['code', '601'],
    ['message', `${account}`],
  ] as const);
  return { name: 'error', attributes, children: [], text: '' };
}

function valuesIn({ attributes }: XmlElement): string[] {
  return Object.values(NAMES).flatMap((name) => attributes.get(name) ?? []);
}

interface Answered {
  readonly one: Asked;
  readonly element: XmlElement;
  /** Whether it has a key submitted for it. */
  readonly isOwn: boolean;
}

function answered(one: Asked, isKeyed: boolean): Answered[] {
  const element = elementOf(one, isKeyed);
  const values = valuesIn(element);
  const isOwn = valuesOf(one).some((key) => values.includes(key));
  if (one.isLeftOut) return [];
  const copies = Array.from({ length: values.length === 0 ? 1 : one.copies }, () => ({ one, element, isOwn }));
  const mayHaveTwo = one.keys.length > 1 && (one.isOld || !one.keys.includes('accessToken'));
  const hasErrorToo = one.hasErrorToo && isOwn && !one.isRefused && mayHaveTwo;
  return hasErrorToo ? [...copies, { one, element: secondOf(one), isOwn: true }] : copies;
}

/** The results; none if the request is refused as a whole. */
function resultsOf(
  elements: readonly XmlElement[],
  submissions: readonly CredentialSubmission[],
): readonly CredentialResult[] {
  const root = { name: 'credentials', attributes: new Map(), children: elements, text: '' };
  const answer = { status: 200, elements: [root], text: '', hide: (text: string) => text, origin: 'http://a' };
  try {
    return credentialResults(answer, submissions, 1);
  } catch (error) {
    if (error instanceof CatchwordError) return [];
    throw error;
  }
}

function expectOwn(list: readonly Answered[], all: readonly Asked[]): void {
  const results = resultsOf(
    list.map(({ element }) => element),
    all.map(submissionOf),
  );
  for (const [place, result] of results.entries()) {
    const own = `${all[place]?.account}`;
    if (result.ok) expect(result.email).toBe(own);
    else if (result.code !== null) expect(result.message).toBe(own);
    else expect(result.message).toContain('does not show');
  }
}

function byRank(one: Answered, other: Answered): number {
  return one.one.rank - other.one.rank;
}

const RUNS = { numRuns: Number(env.CATCHWORD_TEST_RUNS ?? 3_000) };

// @rule 4.3-4
it('no account gets the result of another if elements with a submitted key come in any order', {
  tags: ['slow'],
}, () => {
  fc.assert(
    fc.property(batch, (all) => {
      const list = all.flatMap((one) => answered(one, false));
      const moved = list.filter(({ isOwn }) => isOwn).toSorted(byRank);
      expectOwn(
        list.map((one) => (one.isOwn ? (moved.shift() ?? one) : one)),
        all,
      );
    }),
    RUNS,
  );
});

// @rule 4.3-4
it('no account gets the result of another if errors come first or last', () => {
  fc.assert(
    fc.property(batch, fc.boolean(), (all, isFirst) => {
      // With the submitted keys: an error without them cannot be seen to be moved.
      const list = all.flatMap((one) => answered(one, one.isRefused));
      const groups = [true, false].map((isRefused) => list.filter(({ one }) => one.isRefused === isRefused));
      expectOwn((isFirst ? groups : groups.toReversed()).flat(), all);
    }),
    RUNS,
  );
});

// @rule 4.3-4
it('no account gets the result of another in any order if nothing is left out and one element has no submitted key', () => {
  fc.assert(
    fc.property(batch, fc.nat(), (all, free) => {
      const list = all.flatMap((one, place) => answered({ ...one, isLeftOut: false }, place !== free % all.length));
      fc.pre(list.filter(({ isOwn }) => !isOwn).length <= 1);
      expectOwn(list.toSorted(byRank), all);
    }),
    RUNS,
  );
});

const users = fc.uniqueArray(asked, { minLength: 1, maxLength: 4, selector: ({ account }) => account });
/** The same submission may come again. */
const rows = users.chain((all) => fc.array(fc.constantFrom(...all), { minLength: 1, maxLength: 6 }));

function shown(one: CredentialResult): string {
  return one.ok ? one.accessToken : `${one.code ?? 'unclear'}`;
}

/** Checks the results of an answer that has one element for each submission, in order. */
function expectInOrder(all: readonly Asked[]): void {
  const elements = all.map((one) => elementOf(one, false));
  const results = resultsOf(elements, all.map(submissionOf));
  expect(results.map((one) => (one.ok ? 'ok' : shown(one)))).toEqual(
    all.map(({ isRefused, code }) => (isRefused ? code : 'ok')),
  );
}

it('each submission that is answered once and in order gets its own result, even if it is submitted twice', () => {
  fc.assert(
    fc.property(rows, (all) => {
      expectInOrder(all);
    }),
    RUNS,
  );
});

it('users submitted by a reference and by a stale token get both results of an answer in order', () => {
  fc.assert(
    fc.property(fc.uniqueArray(asked, { minLength: 1, maxLength: 3, selector: ({ account }) => account }), (users) => {
      const all = users.flatMap((one): Asked[] => [
        { ...one, keys: ['reference'], isRefused: false },
        { ...one, keys: ['accessToken'], isOld: true, isRefused: true },
      ]);
      expectInOrder(all);
    }),
    RUNS,
  );
});

const KEY_NAMES: Readonly<Record<string, string>> = { r: 'reference', g: 'guid' };

/** An element in short: `+` a credential or `-` an error, with its keys: `+r0 g0 t0`, `-o0`, `-`. */
function inShort(text: string): XmlElement {
  const keys = text.slice(1).split(' ').filter(Boolean);
  const attributes = new Map(keys.map((key) => [KEY_NAMES[key.charAt(0)] ?? 'access-token', key]));
  const isRefused = text.startsWith('-');
  if (isRefused) attributes.set('code', '601');
  return { name: isRefused ? 'error' : 'credential', attributes, children: [], text: '' };
}

/** A submission in short: `r0` is a reference, `g0` a guid, `t0` and `o0` are tokens, `r0 o0` are both. */
function submitted(text: string): CredentialSubmission {
  const keys = text.split(' ').map((key) => [KEY_NAMES[key.charAt(0)] ?? 'accessToken', key]);
  return Object.fromEntries(keys) as unknown as CredentialSubmission;
}

it.each([
  // By keys: in any order, repeated, submitted twice, and without an answer.
  ['r0, r1, r2', '+r2 t2, -r1, +r0 t0', 't0, 601, t2'],
  ['r0, r1', '+r0 t0, +r0 g9 t9, +r1 t1', 't0, t1'],
  ['r0, r0', '+r0 t0', 't0, t0'],
  ['r0, r0', '+r0 t0, +r0 t0', 't0, t0'],
  ['r0, r1, r2', '+r0 t0, +r2 t2', 't0, unclear, t2'],
  ['r0', '+r1 t1', 'unclear'],
  ['r0, r1', '+r1 t1, -r2', 'unclear, t1'],
  ['r0 g9, r1', '+r1 g1 t1, +r0 g0 t0', 'unclear, t1'],
  ['r0 g9, r1', '+r1 g1 t1, +r0 g0 t0, +r2 g2 t2', 'unclear, t1'],
  // By place, errors without keys included, if the answer is in order.
  ['o0, o1, r0', '+g9 n9, -, +r0 t0', 'n9, 601, t0'],
  ['o0, o1, r0', '+r0 t0, +g9 n9, -', 'unclear, unclear, t0'],
  // An element that is repeated without a reference does not go to another account.
  ...['+g0 t0, +g1 t1, +g0 t0', '+g0 t0, +g1 t1, +g1 t1', '+g0 t0, +g0 t0, +g1 t1'].flatMap((elements) => [
    ['t0, t1, t2', elements, 't0, t1, unclear'],
    ['g0, g1, g2', elements, 't0, t1, unclear'],
  ]),
  ...['t0, t1, t2', 'g0, g1, g2'].flatMap((submissions) => [
    [submissions, '+g0 t0, +g1 t1', 't0, t1, unclear'],
    [submissions, '+g0 t0, +g0 t0, +g1 t1, +g1 t1', 't0, t1, unclear'],
    [submissions, '+g0 t0, +g0 t0, +g1 t1, -', 't0, t1, 601'],
  ]),
  // New tokens: the answer has no submitted key.
  ['t0, t1, t2', '+g8 n8, +g8 n8, +g9 n9', 'unclear, unclear, unclear'],
  ['t0, t1, t2', '+g7 n7, +g7 n7, +g8 n8, +g9 n9', 'n7, n8, n9'],
  // Two keys of one user. A second credential could be a repetition, and the token left out.
  ['r0, o0, r1', '+r0 g0 t0, -r0 g0, +r1 t1', 't0, 601, t1'],
  ['o0, r0, r1', '-r0 g0, +r0 g0 t0, +r1 t1', '601, t0, t1'],
  ['r0, o0, r1', '+r0 g0 t0, +r0 g0 t0, +r1 t1', 't0, unclear, t1'],
  ['o0, o1, r1', '-r0 g0, -r0 g0, +r1 t1', 'unclear, unclear, t1'],
  ['g0, o1, o2', '+g0 n0, +g0 n0, +g2 n2', 'n0, unclear, unclear'],
  ['o0, g0', '-r0 g0, +r0 g0 t0', '601, t0'],
  ['r0 o0, r1', '-r0 g0, +r0 g0 t0', 't0, unclear'],
  ['o0, r0, r1', '-r0 o0, -r0 o0, -', '601, 601, unclear'],
  ['r1 t1, o1, o2', '+r1 t1, -r1, -r2', 't1, unclear, unclear'],
  ['r0 o0, t1', '+r0 t0, -r0', 't0, unclear'],
  // A stale token, submitted twice or with its reference.
  ['o0, r0, o0', '+r0 t0, -, +r0 t0', 'unclear, t0, unclear'],
  ['o0, o0', '+r0 t0, +r0 t0', 't0, t0'],
  ['o0, o1, o0', '-r0, -r1, -r0', '601, 601, 601'],
  ['o0, r0, o1', '-r0, +r0 t0, -r1', '601, t0, 601'],
  ['r0, r1, r1 o1', '-, -o1, -o1', 'unclear, unclear, 601'],
  // Errors first or last.
  ['r0, o1, o2', '+g1 n1, +g2 n2, -r0', '601, unclear, unclear'],
  ['r0, o1, o2', '-r0, -r0, +g1 n1', '601, unclear, unclear'],
  ['o2, o1, r0', '-r0, +g1 n1, +g2 n2', 'unclear, unclear, 601'],
  ['o0, r1', '-g0, -g0', 'unclear, unclear'],
  // The error of `o0` is at the place of `r0`, and the credential of `r0` at the place of `o1`.
  ['t1, o1, o0, r0, o2', '+r1 t1, +r0 t0, -, -r0, -r2', 't1, unclear, unclear, t0, unclear'],
])('the submissions %s, answered with %s, get %s', (submissions, elements, expected) => {
  const results = resultsOf(elements.split(', ').map(inShort), submissions.split(', ').map(submitted));
  expect(results.map(shown).join(', ')).toBe(expected);
});
