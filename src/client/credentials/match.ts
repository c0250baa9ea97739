import type { XmlElement } from '../../xml/read.ts';
import { asSubmitted, contradicts, type Element, isAbout, keysOf, sharesKey } from './keys.ts';
import type { CredentialSubmission } from './submission.ts';

/*
 * Which element of an answer is about which submission. No account may be given the credential of another, nor its error:
 * after a wrong 603 a user is created again, after a wrong 601 a token is reset. So, in this order:
 *
 * 1. By key: the reference, the guid or the token that was submitted.
 * 2. By what is left, where nothing was left out: there is an element for each submission and none is a repetition. If one
 *    element and one submission are left they belong together, and so do more of them if the elements are all alike.
 * 3. By place, where the answer is in order: there is an element for each submission, whoever is named in the answer is named
 *    at his own place, and neither a repetition nor what may be a second answer stands at the place of somebody else.
 *
 * Whoever has none after that is not known to be answered for. Relied on is that keys are true; that an element with none of
 * the keys that were submitted for it is in order; and that submissions which share a key, or which one credential has the
 * keys of, are answered alike. See test/client/credential-match.test.ts.
 *
 * Credentials of one account have the same token, whatever else the service leaves out: that tells a repetition.
 */

/** Each key with the kind of the element: an error for a user is no repetition of his credential. */
function kindsOf(one: Element): string[] {
  return keysOf(one).map((key) => `${one.element.name} ${key}`);
}

/** By each key, the first that has it. */
function indexed<One extends Element | CredentialSubmission>(all: readonly One[]): Map<string, One> {
  const index = new Map<string, One>();
  for (const one of all) for (const key of keysOf(one)) if (!index.has(key)) index.set(key, one);
  return index;
}

/** Without what comes again: an account may be answered for more than once, and the first counts. */
function withoutRepetitions(elements: readonly Element[]): Element[] {
  const seen = new Set<string>();
  return elements.filter((one) => {
    const isAgain = kindsOf(one).some((key) => seen.has(key));
    for (const key of kindsOf(one)) seen.add(key);
    return !isAgain;
  });
}

type Found = readonly (Element | undefined)[];

function isError({ element }: Element): boolean {
  return element.name === 'error';
}

/** Whether each submission has an element at its place that names it. */
function isPlain(elements: readonly Element[], submissions: readonly CredentialSubmission[]): boolean {
  return (
    elements.length === submissions.length &&
    submissions.every((submission, place) => {
      const there = elements[place];
      return there !== undefined && isAbout(there, submission);
    })
  );
}

/** A credential goes before an error: a user may be verified by one key while the token that is submitted beside it is stale. */
function byKey(
  elements: readonly Element[],
  placed: readonly Element[],
  submissions: readonly CredentialSubmission[],
): Found {
  const credentials = indexed(elements.filter((one) => !isError(one)));
  const errors = indexed(elements.filter(isError));
  return submissions.map((submission, place) => {
    const there = placed[place];
    if (there !== undefined && isAbout(there, submission)) return there;
    return [credentials, errors]
      .flatMap((index) => keysOf(submission).map((key) => index.get(key)))
      .find((one) => one !== undefined && !contradicts(one, submission));
  });
}

function written({ name, attributes, text, children }: XmlElement): string {
  return JSON.stringify([name, [...attributes], text, children.map(written)]);
}

type IsUnfit = (one: Element, submission: CredentialSubmission) => boolean;

/**
 * Which elements cannot be given to a submission by no key: what contradicts it, and an error that may be the second answer
 * to another submission, which has two keys and whose token may be stale: no credential has it.
 */
function unfitFor(elements: readonly Element[], submissions: readonly CredentialSubmission[]): IsUnfit {
  const valid = new Set(elements.filter((one) => !isError(one)).map(({ accessToken }) => accessToken));
  const isVerified = ({ accessToken }: CredentialSubmission): boolean =>
    accessToken !== undefined && valid.has(accessToken);
  const ofTwoKeys = indexed(submissions.filter((one) => keysOf(one).length > 1 && !isVerified(one)));
  return (one, submission) => {
    if (contradicts(one, submission)) return true;
    const others = isError(one) ? keysOf(one).map((key) => ofTwoKeys.get(key)) : [];
    return others.some((other) => other !== undefined && !sharesKey(other, submission));
  };
}

/** Gives what is left to those that are left, if it makes no difference to whom. */
function byRest(
  found: Found,
  distinct: readonly Element[],
  submissions: readonly CredentialSubmission[],
  isUnfit: IsUnfit,
): Found | undefined {
  const used = new Set(found);
  const left = distinct.filter((one) => !used.has(one));
  const isOne = new Set(left.map(({ element }) => written(element))).size === 1;
  if (!isOne || left.length !== found.filter((one) => one === undefined).length) return undefined;
  return submissions.map((submission, place) => {
    if (found[place] !== undefined) return found[place];
    const one = left.shift();
    return one === undefined || isUnfit(one, submission) ? undefined : one;
  });
}

/** Whether nothing in the answer shows that places say nothing. */
function isInOrder(
  placed: readonly Element[],
  submissions: readonly CredentialSubmission[],
  isUnfit: IsUnfit,
): boolean {
  const named = indexed(placed);
  const isOwn = submissions.map(
    (submission, place) => placed[place] !== undefined && isAbout(placed[place], submission),
  );
  const refused = indexed(submissions.filter((_, place) => isOwn[place] && placed[place] && isError(placed[place])));
  const first = new Map<string, number>();
  const isMoved = (there: Element, submission: CredentialSubmission): boolean =>
    isUnfit(there, submission) ||
    keysOf(submission).some((key) => named.has(key)) ||
    // Where it belongs, an error stands.
    (!isError(there) && keysOf(there).some((key) => refused.has(key)));
  return submissions.every((submission, place) => {
    const there = placed[place];
    if (there === undefined || (isOwn[place] !== true && isMoved(there, submission))) return false;
    return kindsOf(there).every((key) => {
      const before = first.get(key) ?? place;
      first.set(key, before);
      const other = submissions[before];
      const isSame = other !== undefined && sharesKey(other, submission);
      const isOfBoth = isOwn[place] === true && isOwn[before] === true;
      const isAlike = isOwn[place] === isOwn[before];
      return before === place || (isError(there) ? isSame && isAlike : isSame || isOfBoth);
    });
  });
}

/**
 * The element of each submission, in their order; undefined where nobody can tell. An account that was submitted twice may
 * have the same one twice.
 * @param hasPlaces whether the elements stand in one list
 */
export function matched(
  said: readonly Element[],
  submissions: readonly CredentialSubmission[],
  hasPlaces: boolean,
): Found {
  // So it is most of the time, and what follows takes memory.
  if (hasPlaces && isPlain(said, submissions)) return said;
  const elements = asSubmitted(said, submissions);
  const distinct = withoutRepetitions(elements);
  const isWhole = distinct.length === submissions.length;
  const lists = hasPlaces ? [elements, distinct] : [];
  const inOrder = lists.find(({ length }) => length === submissions.length) ?? [];
  const isUnfit = unfitFor(elements, submissions);
  const placed = isInOrder(inOrder, submissions, isUnfit) ? inOrder : [];
  const found = byKey(elements, placed, submissions);
  const rest = isWhole ? byRest(found, distinct, submissions, isUnfit) : undefined;
  return rest ?? found.map((one, place) => one ?? placed[place]);
}
