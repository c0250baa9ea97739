import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { CredentialResult, CredentialSubmission } from '../../src/client/operations/credential.ts';
import { credentialResults } from '../../src/client/operations/credential-answers.ts';
import { CatchwordError } from '../../src/errors.ts';
import type { XmlElement } from '../../src/xml/read.ts';

/*
 * No account is given another account's credential, whatever the service leaves out, doubles or reorders. Its keys are
 * true. A credential that holds none of the keys that were submitted can be known by its place alone, so such answers come
 * in order, repetitions next to each other, and submissions that share a key are either all verified or all refused:
 * a repetition in the place of one of them could not be told from its own answer.
 */

interface Asked {
  readonly account: number;
  readonly keys: readonly ('reference' | 'guid' | 'accessToken')[];
  readonly isStale: boolean;
  /** Keys that the answer repeats though they were not submitted, or leaves out though they were. */
  readonly says: { readonly reference: boolean; readonly guid: boolean };
  readonly isLeftOut: boolean;
  readonly copies: number;
  readonly rank: number;
}

const KEYS = [['reference'], ['guid'], ['accessToken'], ['reference', 'accessToken'], ['reference', 'guid']] as const;
const asked: fc.Arbitrary<Asked> = fc.record({
  account: fc.nat({ max: 3 }),
  keys: fc.constantFrom(...KEYS),
  isStale: fc.boolean(),
  says: fc.record({ reference: fc.boolean(), guid: fc.boolean() }),
  isLeftOut: fc.boolean(),
  copies: fc.constantFrom(1, 1, 1, 2, 3),
  rank: fc.nat(),
});

function keyOf(key: string, account: number): string {
  return `${key}-${account}`;
}

function submissionOf({ account, keys }: Asked): CredentialSubmission {
  return Object.fromEntries(keys.map((key) => [key, keyOf(key, account)])) as unknown as CredentialSubmission;
}

/** Are submissions that share a key either all verified or all refused? */
function isAnsweredAlike(all: readonly Asked[]): boolean {
  return all.every((one) =>
    all.every(
      (other) =>
        one.isStale === other.isStale ||
        one.account !== other.account ||
        !one.keys.some((key) => other.keys.includes(key)),
    ),
  );
}

function elementOf({ account, keys, says, isStale }: Asked, isRepeated: boolean, isNew: boolean): XmlElement {
  const attributes = new Map<string, string>();
  for (const key of ['reference', 'guid'] as const) {
    if (says[key] || (isRepeated && !isStale && keys.includes(key))) attributes.set(key, keyOf(key, account));
  }
  if (isStale) attributes.set('code', '601');
  else attributes.set('access-token', isNew ? `new-${account}` : keyOf('accessToken', account));
  attributes.set('email', `${account}`);
  return { name: isStale ? 'error' : 'credential', attributes, children: [], text: '' };
}

/** The results, or none where the request is refused as a whole. */
function resultsOf(elements: readonly XmlElement[], all: readonly Asked[]): readonly CredentialResult[] {
  const root = { name: 'credentials', attributes: new Map(), children: elements, text: '' };
  const answer = { status: 200, elements: [root], hide: (text: string) => text };
  try {
    return credentialResults(answer, all.map(submissionOf), 1, 'http://service.example');
  } catch (error) {
    if (error instanceof CatchwordError) return [];
    throw error;
  }
}

function expectOwn(results: readonly CredentialResult[], all: readonly Asked[]): void {
  for (const [place, result] of results.entries()) {
    if (result.ok) expect(result.email).toBe(`${all[place]?.account}`);
  }
}

/** Each element with its copies; an error has one, for nothing tells two of them apart. */
function copied(all: readonly Asked[], elementFor: (one: Asked) => XmlElement): [XmlElement, number, boolean][] {
  return all
    .filter(({ isLeftOut }) => !isLeftOut)
    .flatMap((one) => {
      const copies = one.isStale ? 1 : one.copies;
      const element = elementFor(one);
      return Array.from({ length: copies }, (_, index): [XmlElement, number, boolean] => [
        element,
        one.rank,
        index > 0,
      ]);
    });
}

it('no account is given the credential of another: by what was submitted, in any order', () => {
  fc.assert(
    fc.property(fc.array(asked, { minLength: 1, maxLength: 6 }), fc.boolean(), (all, isNew) => {
      const keyed = (one: Asked) => elementOf(one, true, isNew && !one.keys.every((key) => key === 'accessToken'));
      const elements = copied(all, keyed).toSorted(([, one], [, other]) => one - other);
      expectOwn(
        resultsOf(
          elements.map(([element]) => element),
          all,
        ),
        all,
      );
    }),
    { numRuns: 5_000 },
  );
});

it('no account is given the credential of another: by what else the service says, in order', () => {
  fc.assert(
    fc.property(fc.array(asked, { minLength: 1, maxLength: 6 }).filter(isAnsweredAlike), (all) => {
      const elements = copied(all, (one) => elementOf(one, false, true));
      expectOwn(
        resultsOf(
          elements.map(([element]) => element),
          all,
        ),
        all,
      );
    }),
    { numRuns: 5_000 },
  );
});

it('each account that is answered for once and in order is given its own', () => {
  fc.assert(
    fc.property(fc.uniqueArray(asked, { minLength: 1, maxLength: 4, selector: ({ account }) => account }), (all) => {
      const elements = all.map((one) => elementOf(one, false, true));
      expect(resultsOf(elements, all).map(({ ok }) => ok)).toEqual(all.map(({ isStale }) => !isStale));
    }),
    { numRuns: 2_000 },
  );
});
