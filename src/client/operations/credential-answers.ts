import { CatchwordError } from '../../errors.ts';
import type { XmlElement } from '../../xml/read.ts';
import type { XmlAnswer } from '../answer.ts';
import { saidByElements } from '../said.ts';
import type { Hide } from '../secrets.ts';
import { attribute, errorIn, otherAttributes, recordsIn, unexpected } from '../xml-answer.ts';
import { type CredentialResult, type CredentialSubmission, nameOf } from './credential.ts';

/** An element of the answer, and which account it says it is about. */
interface Element {
  readonly element: XmlElement;
  readonly reference: string | null;
  readonly guid: string | null;
  readonly accessToken: string | null;
}

/** Codes that are about the request: malformed, or HTTP's own. The service's codes from 468 to 474 are about a user. */
function isOfRequest(code: number | undefined): boolean {
  return code === 650 || (code !== undefined && code >= 400 && code < 600 && !(code >= 468 && code <= 474));
}

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
  hide: Hide,
): CredentialResult {
  const about = { reference: reference ?? submitted.reference ?? null, guid: guid ?? submitted.guid ?? null };
  const said = saidByElements([element], hide);
  // The token of one that carries an error is the one that is no longer valid.
  if (element.name === 'credential' && accessToken !== null && said?.code === undefined) {
    const email = attribute(element, 'email');
    return { ok: true, ...about, accessToken, email, others: otherAttributes(element, KNOWN) };
  }
  const message = said?.text || (element.name === 'error' ? '' : 'the service gave no access token');
  return { ok: false, code: said?.code ?? null, message, ...about };
}

/**
 * The result where the element at a submission's place is about an account that another element is about as well: its own,
 * under another key, or only a repetition. Nobody can tell, so no credential is handed out; an error says what it says.
 */
function unclear({ element }: Element, submitted: CredentialSubmission, hide: Hide): CredentialResult {
  const said = saidByElements([element], hide);
  const message = said?.text || 'the service answered for another account twice, or for this one under another name';
  const about = { reference: submitted.reference ?? null, guid: submitted.guid ?? null };
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

/** Whether an element is about a submission by one of its keys. */
function isAbout(found: Element, submission: CredentialSubmission): boolean {
  return KEYS.some((key) => found[key] !== null && found[key] === submission[key]) && !contradicts(found, submission);
}

function isSame(one: CredentialSubmission | undefined, other: CredentialSubmission | undefined): boolean {
  return KEYS.some((key) => one?.[key] !== undefined && one[key] === other?.[key]);
}

/**
 * What no submission was found for, without what comes again, or one account would be given the credential of another.
 * Where there is an element for each submission, two for an account that was submitted twice are no repetition, nor is an
 * error one of a credential: its user was submitted under two keys.
 */
function leftOver(
  elements: readonly Element[],
  submissions: readonly CredentialSubmission[],
  taken: ReadonlySet<Element | undefined>,
): Element[] {
  const isComplete = elements.length === submissions.length;
  const first = new Map<string, number>();
  const isError = (place: number): boolean => elements[place]?.element.name === 'error';
  function isAgain(one: Element, place: number): boolean {
    return KEYS.some((key) => {
      const before = one[key] === null ? undefined : first.get(`${key} ${one[key]}`);
      if (before === undefined) return false;
      const isOwn = isSame(submissions[place], submissions[before]) || (isError(place) && !isError(before));
      return !(isComplete && isOwn);
    });
  }
  function note(one: Element, place: number): void {
    for (const key of KEYS) {
      const name = `${key} ${one[key]}`;
      if (one[key] !== null && !first.has(name)) first.set(name, place);
    }
  }
  for (const [place, one] of elements.entries()) if (taken.has(one)) note(one, place);
  return elements.filter((one, place) => {
    const isLeft = !taken.has(one) && !isAgain(one, place);
    note(one, place);
    return isLeft;
  });
}

interface Matched {
  /** In the order of the submissions. */
  readonly found: readonly (Element | undefined)[];
  /** What comes again, and errors whose account is not known. */
  readonly spare: ReadonlySet<Element>;
}

/**
 * The element of each submission: the one at its place where there are as many and its keys say so, or the first that its
 * keys lead to. What is left on both sides is taken in order, if it is as many.
 */
function matched(elements: readonly Element[], submissions: readonly CredentialSubmission[]): Matched {
  const isComplete = elements.length === submissions.length;
  const indexes = KEYS.map((key) => [key, indexed(elements, key)] as const);
  const found = submissions.map((submission, place) => {
    const there = isComplete ? elements[place] : undefined;
    if (there !== undefined && isAbout(there, submission)) return there;
    return indexes
      .map(([key, index]) => index.get(submission[key] ?? ''))
      .find((element) => element !== undefined && !contradicts(element, submission));
  });
  const left = leftOver(elements, submissions, new Set(found));
  const open = submissions.flatMap((submission, place) => (found[place] === undefined ? [{ submission, place }] : []));
  for (const [index, { submission, place }] of open.entries()) {
    const element = open.length === left.length ? left[index] : undefined;
    if (element !== undefined && !contradicts(element, submission)) found[place] = element;
  }
  const used = new Set([...found, ...left.filter(({ element }) => element.name !== 'error')]);
  return { found, spare: new Set(elements.filter((element) => !used.has(element))) };
}

/** The error of the request as a whole: errors about no account whose code is about the request, or not one for each. */
function requestError(
  elements: readonly Element[],
  others: readonly XmlElement[],
  submitted: number,
  answer: XmlAnswer,
  origin: string,
): CatchwordError | undefined {
  const keyless = elements.filter((one) => one.element.name === 'error' && isKeyless(one));
  const ofRequest = keyless.filter(({ element }) => isOfRequest(saidByElements([element], answer.hide)?.code));
  const isWhole = keyless.length === elements.length && elements.length !== submitted;
  const whole = [...others, ...(isWhole ? keyless : ofRequest).map(({ element }) => element)];
  const error = errorIn(whole, { ...answer, refusal: undefined }, origin);
  // The status says more than a text without a code.
  if (error !== undefined) return error.serviceCode === undefined ? (answer.refusal ?? error) : error;
  return elements.length === 0 ? answer.refusal : undefined;
}

/**
 * The results for what was submitted, in its order. Elements are matched by reference, guid and token; by position where
 * the service left these out. An account whose element cannot be told from a repetition of another is refused alone, with
 * the code null.
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
  const { records, others, roots } = recordsIn(answer, 'credentials', ['credential', 'error']);
  const elements = records.map(elementFrom);
  const error = requestError(elements, others, submissions.length, answer, origin);
  if (error !== undefined) throw error;
  if (roots.length === 0 && elements.length === 0) throw unexpected('credentials', answer, origin);
  const { found, spare } = matched(elements, submissions);
  const isComplete = elements.length === submissions.length;
  return submissions.map((submission, index) => {
    const element = found[index];
    if (element !== undefined) return resultOf(element, submission, answer.hide);
    const there = isComplete ? elements[index] : undefined;
    if (there !== undefined && spare.has(there) && !contradicts(there, submission)) {
      return unclear(there, submission, answer.hide);
    }
    const position = firstPosition + index;
    throw new CatchwordError('SERVICE_ERROR', `${origin} did not answer for ${nameOf(submission, position)}`, {
      hint: `It is credential ${position} of what was submitted. Try again; if it stays so, leave it out.`,
      status: answer.status,
    });
  });
}
