import { env } from 'node:process';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { credentialResults } from '../../src/client/credentials/results.ts';
import type { CredentialResult, CredentialSubmission } from '../../src/client/credentials/submission.ts';
import { CatchwordError } from '../../src/errors.ts';
import type { XmlElement } from '../../src/xml/read.ts';

/*
 * No account is given another account's credential, code or message, whatever the service leaves out, doubles or
 * reorders. Three things are relied on, since an answer without them reads the same as one that has them:
 *
 * - The keys of an element are keys of its account.
 * - An element that has none of the keys that were submitted for it is not moved; or all errors are, and have the keys that
 *   were submitted for them; or nothing was left out, and there is but one such element. An error without any key comes once.
 * - Submissions that share a key are answered alike: verified or refused, with the same keys. So are those whose keys stand
 *   in one credential.
 * - Two answers, a credential and an error, are for a submission of two keys, none of them a valid token, and both have a
 *   key that was submitted.
 *
 * What cannot be told: `t0, t1` answered with the new tokens of 1 and 0; `t0, t1` answered with the error of 0 twice, the one
 * of 1 left out, and no key in any of them; `r0, g0, t1` answered with the credential of `r0` twice, the first of them for
 * `r0` with `g0` in it, and then the error of `g0` without a key, and nothing for `t1`.
 */

type Key = 'reference' | 'guid' | 'accessToken';

interface Asked {
  readonly account: number;
  readonly keys: readonly Key[];
  /** The token that is submitted is another than the one that is valid. */
  readonly isOld: boolean;
  readonly isRefused: boolean;
  readonly code: string;
  /** Keys that the answer has though they were not submitted, or lacks though they were; the token is that of an error. */
  readonly says: Readonly<Record<Key, boolean>>;
  /** Verified by one of two keys, it has an error as well: the token beside a reference may be stale. */
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

/** Submissions with a key in common are answered alike, and what is verified has no key of something that is refused. */
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

/** @param isKeyed whether it has all that was submitted, whatever it says else */
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
  /** Whether it has a key that was submitted for it. */
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

/** The results, or none where the request is refused as a whole. */
function resultsOf(elements: readonly XmlElement[], all: readonly Asked[]): readonly CredentialResult[] {
  const root = { name: 'credentials', attributes: new Map(), children: elements, text: '' };
  const answer = { status: 200, elements: [root], text: '', hide: (text: string) => text, origin: 'http://a' };
  try {
    return credentialResults(answer, all.map(submissionOf), 1);
  } catch (error) {
    if (error instanceof CatchwordError) return [];
    throw error;
  }
}

function expectOwn(list: readonly Answered[], all: readonly Asked[]): void {
  const results = resultsOf(
    list.map(({ element }) => element),
    all,
  );
  for (const [place, result] of results.entries()) {
    const own = `${all[place]?.account}`;
    if (result.ok) expect(result.email).toBe(own);
    else if (result.code !== null) expect(result.message).toBe(own);
    else expect(result.message).toContain('did not make clear');
  }
}

function byRank(one: Answered, other: Answered): number {
  return one.one.rank - other.one.rank;
}

const RUNS = { numRuns: Number(env.CATCHWORD_TEST_RUNS ?? 3_000) };

it('no account is given what is another’s: in any order of elements with a key that was submitted', () => {
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

it('no account is given what is another’s: with errors first or last', () => {
  fc.assert(
    fc.property(batch, fc.boolean(), (all, isFirst) => {
      // With what was submitted: an error without it could not be seen to have been moved.
      const list = all.flatMap((one) => answered(one, one.isRefused));
      const groups = [true, false].map((isRefused) => list.filter(({ one }) => one.isRefused === isRefused));
      expectOwn((isFirst ? groups : groups.toReversed()).flat(), all);
    }),
    RUNS,
  );
});

it('no account is given what is another’s: in any order, if nothing is left out and one element has no key of its own', () => {
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

it('each submission that is answered for once and in order is given its own, though it comes again', () => {
  fc.assert(
    fc.property(rows, (all) => {
      const elements = all.map((one) => elementOf(one, false));
      const results = resultsOf(elements, all).map((one) => (one.ok ? 'ok' : `${one.code}`));
      expect(results).toEqual(all.map(({ isRefused, code }) => (isRefused ? code : 'ok')));
    }),
    RUNS,
  );
});

it('users who were submitted by a reference and by a token are given both results, in order and by any keys', () => {
  fc.assert(
    fc.property(fc.uniqueArray(asked, { minLength: 1, maxLength: 3, selector: ({ account }) => account }), (users) => {
      const all = users.flatMap((one): Asked[] => [
        { ...one, keys: ['reference'], isRefused: false },
        { ...one, keys: ['accessToken'], isOld: true, isRefused: true },
      ]);
      const results = resultsOf(
        all.map((one) => elementOf(one, false)),
        all,
      );
      expect(results.map((one) => (one.ok ? 'ok' : one.code === null ? 'unclear' : `${one.code}`))).toEqual(
        all.map(({ isRefused, code }) => (isRefused ? code : 'ok')),
      );
    }),
    RUNS,
  );
});

/**
 * A credential or an error in few words: `+0` is the credential of account 0, `-0` its error, `-` one without a key, and
 * `-:o0` one with a token alone.
 */
function inShort(text: string): XmlElement {
  const isRefused = text.startsWith('-');
  const [account = '', token = ''] = text.slice(1).split(':');
  const attributes = new Map([['reference', account && `r${account}`]]);
  attributes.set('access-token', isRefused ? token : `t${account}`);
  if (isRefused) attributes.set('code', '601');
  return { name: isRefused ? 'error' : 'credential', attributes, children: [], text: '' };
}

/** Submissions in few words: `r0` is a reference, `t0` and `o0` are tokens, `r0 o0` are both. */
function shortly(submissions: readonly string[], elements: readonly string[]): string[] {
  const all = submissions.map((one) =>
    Object.fromEntries(one.split(' ').map((key) => [key.startsWith('r') ? 'reference' : 'accessToken', key])),
  ) as unknown as CredentialSubmission[];
  const root = { name: 'credentials', attributes: new Map(), children: elements.map(inShort), text: '' };
  const answer = { status: 200, elements: [root], text: '', hide: (text: string) => text, origin: 'http://a' };
  const results = credentialResults(answer, all, 1);
  return results.map((one) => (one.ok ? one.accessToken : one.code === null ? 'unclear' : `${one.code}`));
}

it.each([
  ['a stale token twice, by the reference of its account', 'o0, o1, o0', '-0, -1, -0', '601, 601, 601'],
  ['a user by a stale token and by a reference', 'o0, r0, o1', '-0, +0, -1', '601, t0, 601'],
  ['the error of another, and one with a token twice', 'r0, r1, r1 o1', '-, -:o1, -:o1', 'unclear, unclear, 601'],
  // The error of `o0` stands where `r0` was submitted, and the credential of `r0` where `o1` was.
  ['the same, errors last', 't1, o1, o0, r0, o2', '+1, +0, -, -0, -2', 't1, unclear, unclear, t0, unclear'],
  ['a user by a valid token and a reference, and by a stale token', 'r1 t1, o1, o2', '+1, -1, -2', 't1, 601, 601'],
  ['a stale token beside a reference, and nothing for another', 'r0 o0, t1', '+0, -0', 't0, unclear'],
])('%s', (_name, submissions, elements, expected) => {
  expect(shortly(submissions.split(', '), elements.split(', '))).toEqual(expected.split(', '));
});
