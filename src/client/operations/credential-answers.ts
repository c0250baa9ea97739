import { CatchwordError } from '../../errors.ts';
import type { XmlElement } from '../../xml/read.ts';
import type { XmlAnswer } from '../caller.ts';
import { saidByElements } from '../said.ts';
import { attribute, errorIn, otherAttributes, recordsIn, unexpected } from '../xml-answer.ts';
import { type CredentialResult, type CredentialSubmission, nameOf } from './credential.ts';

/** An element of the answer, and which account it says it is about. */
interface Element {
  readonly element: XmlElement;
  readonly reference: string | null;
  readonly guid: string | null;
  readonly accessToken: string | null;
}

/** The code of a request that is malformed. */
const MALFORMED = 650;

const KNOWN = ['reference', 'guid', 'access-token', 'email'];

function elementFrom(element: XmlElement): Element {
  return {
    element,
    reference: attribute(element, 'reference'),
    guid: attribute(element, 'guid'),
    accessToken: attribute(element, 'access-token'),
  };
}

function isKeyless({ reference, guid, accessToken }: Element): boolean {
  return reference === null && guid === null && accessToken === null;
}

function resultOf(
  { element, reference, guid, accessToken }: Element,
  submitted: CredentialSubmission,
): CredentialResult {
  const about = { reference: reference ?? submitted.reference ?? null, guid: guid ?? submitted.guid ?? null };
  if (element.name === 'credential' && accessToken !== null) {
    const email = attribute(element, 'email');
    return { ok: true, ...about, accessToken, email, others: otherAttributes(element, KNOWN) };
  }
  const said = saidByElements([element]);
  const text = said?.text || (element.name === 'error' ? '' : 'the service gave no access token');
  const message = submitted.accessToken === undefined ? text : text.replaceAll(submitted.accessToken, '[secret]');
  return { ok: false, code: said?.code ?? null, message, ...about };
}

/** Does what an element says it is about contradict what was submitted? Tokens do not: the answer holds the valid one. */
function contradicts(found: Element, { reference, guid }: CredentialSubmission): boolean {
  const otherReference = reference !== undefined && found.reference !== null && found.reference !== reference;
  const otherGuid = guid !== undefined && found.guid !== null && found.guid !== guid;
  return otherReference || otherGuid;
}

const KEYS = ['reference', 'guid', 'accessToken'] as const;
type Key = (typeof KEYS)[number];

/** By each key, the first element that has it: an account may be answered more than once, and the first counts. */
function indexed(elements: readonly Element[], key: Key): Map<string, Element> {
  const index = new Map<string, Element>();
  for (const element of elements) {
    const value = element[key];
    if (value !== null && !index.has(value)) index.set(value, element);
  }
  return index;
}

/** Whether an element says that it is about a submission at another place. */
function isOfAnother(found: Element, submission: CredentialSubmission, places: ReadonlyMap<Key, ReadonlySet<string>>) {
  return KEYS.some((key) => {
    const value = found[key];
    return value !== null && value !== submission[key] && places.get(key)?.has(value) === true;
  });
}

/** Whether the elements can be taken one by one: as many as were submitted, none about another account. */
function isInOrder(elements: readonly Element[], submissions: readonly CredentialSubmission[]): boolean {
  if (elements.length !== submissions.length) return false;
  const places = new Map(KEYS.map((key) => [key, new Set(submissions.flatMap((one) => one[key] ?? []))]));
  return submissions.every((submission, place) => {
    const found = elements[place];
    return found !== undefined && !contradicts(found, submission) && !isOfAnother(found, submission, places);
  });
}

/** Finds each submission's element by its keys; what is left on both sides is taken in order, if it is as many. */
function byKeys(elements: readonly Element[], submissions: readonly CredentialSubmission[]): (Element | undefined)[] {
  const indexes = KEYS.map((key) => [key, indexed(elements, key)] as const);
  const found = submissions.map((submission) =>
    indexes
      .map(([key, index]) => index.get(submission[key] ?? ''))
      .find((element) => element !== undefined && !contradicts(element, submission)),
  );
  const references = new Set(found.map((element) => element?.reference ?? null));
  const taken = new Set(found);
  const isAgain = ({ reference }: Element): boolean => reference !== null && references.has(reference);
  const left = elements.filter((element) => !taken.has(element) && !isAgain(element));
  const open = submissions.flatMap((submission, place) => (found[place] === undefined ? [{ submission, place }] : []));
  for (const [index, { submission, place }] of open.entries()) {
    // As many are left as are wanted; or each account has its place, and this one is answered for twice.
    const element = open.length === left.length ? left[index] : elements[place];
    const isPlaced = open.length === left.length || elements.length === submissions.length;
    if (isPlaced && element !== undefined && !contradicts(element, submission)) found[place] = element;
  }
  return found;
}

/** The error of the request as a whole: 650, or errors about no account that are not one for each. */
function requestError(
  elements: readonly Element[],
  others: readonly XmlElement[],
  submitted: number,
  answer: XmlAnswer,
  origin: string,
): CatchwordError | undefined {
  const keyless = elements.filter((one) => one.element.name === 'error' && isKeyless(one));
  const malformed = keyless.filter(({ element }) => saidByElements([element])?.code === MALFORMED);
  const isWhole = keyless.length === elements.length && elements.length !== submitted;
  const whole = [...others, ...(isWhole ? keyless : malformed).map(({ element }) => element)];
  const error = errorIn(whole, { ...answer, refusal: undefined }, origin);
  // The status says more than a text without a code.
  if (error !== undefined) return error.serviceCode === undefined ? (answer.refusal ?? error) : error;
  return elements.length === 0 ? answer.refusal : undefined;
}

/**
 * The results for what was submitted, in its order. Elements are matched by reference, guid and token; by position where
 * the service left these out.
 *
 * @param firstPosition of the first submission, from 1, for errors
 * @throws CatchwordError SERVICE_* where the whole request was refused; SERVICE_ERROR naming the first account that was
 *   not answered for
 */
export function credentialResults(
  answer: XmlAnswer,
  submissions: readonly CredentialSubmission[],
  firstPosition: number,
  origin: string,
): CredentialResult[] {
  const { records, others, hasRoot } = recordsIn(answer, 'credentials', ['credential', 'error']);
  const elements = records.map(elementFrom);
  const error = requestError(elements, others, submissions.length, answer, origin);
  if (error !== undefined) throw error;
  if (!hasRoot && elements.length === 0) throw unexpected('credentials', answer, origin);
  const inOrder = isInOrder(elements, submissions);
  const found = inOrder ? elements : byKeys(elements, submissions);
  return submissions.map((submission, index) => {
    const element = found[index];
    if (element !== undefined) return resultOf(element, submission);
    const position = firstPosition + index;
    throw new CatchwordError('SERVICE_ERROR', `${origin} did not answer for ${nameOf(submission, position)}`, {
      hint: `It is credential ${position} of what was submitted. Try again; if it stays so, leave it out.`,
      status: answer.status,
    });
  });
}
