import type { XmlElement } from '@catchword/xml/read';
import { fieldsOf } from '../http/xml-records.ts';
import { type CredentialSubmission, KEYS } from './submission.ts';

/*
 * Finds the element of an answer that is about each submission. No account may get the credential or the error of another:
 * after a wrong 603 a user is created again, after a wrong 601 a token is reset. In this order:
 *
 * 1. By key: an element with a submitted reference, guid or access token is about that submission.
 * 2. By place, if the answer is complete and in order: it has one element for each submission, as far as keys show each is
 *    at the place of its submission, and none can be a repetition or a second answer for another account.
 * 3. Otherwise it is unclear, and the account gets neither a credential nor a code.
 *
 * packages/client/test/credential-match.test.ts states and tests what this relies on.
 */

/** An element of the answer with its keys. @rule 4.3-4 */
export type Element = ReturnType<typeof elementFrom>;

type Keyed = Element | CredentialSubmission;

export function elementFrom(element: XmlElement) {
  const fields = fieldsOf(element);
  const field = (name: string): string | null => fields.get(name) || null;
  return { element, fields, reference: field('reference'), guid: field('guid'), accessToken: field('access-token') };
}

/** Each key with its name, because a reference may equal a guid. */
function keysOf(one: Keyed): string[] {
  return KEYS.flatMap((key) => (one[key] == null ? [] : `${key} ${one[key]}`));
}

/**
 * Whether they are about two accounts. Tokens may differ: the answer has the valid one.
 * @param isOnly whether it is the only element of an answer for one account: then the case of the reference may differ
 */
function contradicts(found: Element, submission: CredentialSubmission, isOnly = false): boolean {
  return (['reference', 'guid'] as const).some((key) => {
    const [one, other] = [found[key], submission[key]];
    const differs = one !== other && !(isOnly && key === 'reference' && one?.toLowerCase() === other?.toLowerCase());
    return one != null && other != null && differs;
  });
}

function sharesKey(one: Keyed, other: Keyed): boolean {
  const keys = keysOf(other);
  return keysOf(one).some((key) => keys.includes(key));
}

function isError({ element }: Element): boolean {
  return element.name === 'error';
}

/** An error for an account is not a repetition of its credential. */
function kindsOf(one: Element): string[] {
  return keysOf(one).map((key) => `${one.element.name} ${key}`);
}

/** Live services repeat elements: the first counts. */
function withoutRepetitions(elements: readonly Element[]): Element[] {
  const seen = new Set<string>();
  return elements.filter((one) => {
    const kinds = kindsOf(one);
    const isRepeated = kinds.some((kind) => seen.has(kind));
    for (const kind of kinds) seen.add(kind);
    return !isRepeated;
  });
}

/** Whether each element is at the place of its submission, as far as keys show; `answered` are all keys of the answer. */
function isInOrder(
  elements: readonly Element[],
  submissions: readonly CredentialSubmission[],
  answered: ReadonlySet<string>,
): boolean {
  const submitted = new Set(submissions.flatMap(keysOf));
  // The token submitted with another key may be stale: then its error may come in addition to the credential.
  const ofTwoKeys = new Set(submissions.map(keysOf).flatMap((keys) => (keys.length > 1 ? keys : [])));
  const first = new Map<string, { isOwn: boolean; submission: CredentialSubmission }>();
  return submissions.every((submission, place) => {
    const one = elements[place];
    if (one === undefined || contradicts(one, submission, submissions.length === 1)) return false;
    const isOwn = sharesKey(one, submission);
    const ofOthers = isError(one) ? ofTwoKeys : submitted;
    if (!isOwn && keysOf(one).some((key) => ofOthers.has(key))) return false;
    if (!isOwn && keysOf(submission).some((key) => answered.has(key))) return false;
    // Two elements of one account: the second may be a repetition, at the place of another account.
    return kindsOf(one).every((kind) => {
      const before = first.get(kind);
      if (before === undefined) first.set(kind, { isOwn, submission });
      const isSame = before === undefined || sharesKey(before.submission, submission);
      if (isError(one)) return isSame && (before?.isOwn ?? isOwn) === isOwn;
      return isSame || (before.isOwn && isOwn);
    });
  });
}

function byKey(elements: readonly Element[]): Map<string, Element> {
  const index = new Map<string, Element>();
  for (const one of elements) for (const key of keysOf(one)) if (!index.has(key)) index.set(key, one);
  return index;
}

/** The element of each submission, in their order; undefined if unclear. `hasPlaces`: the elements are in one list. */
export function matched(
  elements: readonly Element[],
  submissions: readonly CredentialSubmission[],
  hasPlaces: boolean,
): readonly (Element | undefined)[] {
  const answered = new Set(elements.flatMap(keysOf));
  const lists = hasPlaces ? [elements, withoutRepetitions(elements)] : [];
  const placed = lists.find((list) => list.length === submissions.length && isInOrder(list, submissions, answered));
  if (placed !== undefined) return placed;
  // An account may be verified by its reference although the token submitted with it is stale: its credential counts.
  const indexes = [byKey(elements.filter((one) => !isError(one))), byKey(elements.filter(isError))];
  return submissions.map((submission) =>
    indexes
      .flatMap((index) => keysOf(submission).map((key) => index.get(key)))
      .find((one) => one !== undefined && !contradicts(one, submission)),
  );
}
