import { CatchwordError } from '../../errors.ts';
import type { XmlElement } from '../../xml/read.ts';
import { errorIn } from '../errors/error-message.ts';
import { treeOfElements } from '../errors/error-tree.ts';
import type { XmlAnswer } from '../http/answer.ts';
import { errorAmong, othersIn, recordsIn, unexpected } from '../http/xml-records.ts';
import type { Hide } from '../redact.ts';
import { type Element, elementFrom } from './keys.ts';
import { matched } from './match.ts';
import { type CredentialResult, type CredentialSubmission, nameOf } from './submission.ts';

/** Codes that are about the request: malformed, or HTTP's own. The service's codes from 468 to 474 are about a user. */
function isOfRequest(code: number | undefined): boolean {
  return code === 650 || (code !== undefined && code >= 400 && code < 600 && !(code >= 468 && code <= 474));
}

const KNOWN = ['reference', 'guid', 'access-token', 'email'];

function isKeyless({ reference, guid, accessToken }: Element): boolean {
  return reference === null && guid === null && accessToken === null;
}

function resultOf(
  { element, fields, reference, guid, accessToken }: Element,
  submitted: CredentialSubmission,
  hide: Hide,
): CredentialResult {
  const about = { reference: reference ?? submitted.reference ?? null, guid: guid ?? submitted.guid ?? null };
  const said = errorIn(treeOfElements([element]), [], hide);
  // The token of one that carries an error is the one that is no longer valid.
  if (element.name === 'credential' && accessToken !== null && said?.code === undefined) {
    return { ok: true, ...about, accessToken, email: fields.get('email') || null, others: othersIn(fields, KNOWN) };
  }
  const message = said?.text || (element.name === 'error' ? '' : 'the service gave no access token');
  return { ok: false, code: said?.code ?? null, message, ...about };
}

/** Nobody can tell which element is this one's, so nothing of any is handed out, not even a code. */
function unclear({ reference, guid }: CredentialSubmission): CredentialResult {
  const message = 'the service did not make clear which of its answers, if any, is about this account';
  return { ok: false, code: null, message, reference: reference ?? null, guid: guid ?? null };
}

/** `<errors>` around failures holds elements of the list as any other; with a code or a text of its own it is an error. */
function withoutWrappers(element: XmlElement): XmlElement {
  const { name, attributes, text, children } = element;
  if (children.length === 0) return element;
  const isWrapper = name === 'errors' && attributes.size === 0 && text === '';
  const isOfErrors = isWrapper && children.every((child) => child.name === 'error');
  return { ...element, name: isOfErrors ? 'list' : name, children: children.map(withoutWrappers) };
}

/** Whether elements are neighbours: grouped by what they are, they are in no order. */
function inOneList(elements: readonly XmlElement[], records: ReadonlySet<XmlElement>): boolean {
  return (
    elements.filter((one) => records.has(one)).length === records.size ||
    elements.some(({ children }) => inOneList(children, records))
  );
}

/** The error of the request as a whole: errors about no account whose code is about the request, or not one for each. */
function requestError(
  elements: readonly Element[],
  others: readonly XmlElement[],
  submitted: number,
  answer: XmlAnswer,
): CatchwordError | undefined {
  const keyless = elements.filter((one) => one.element.name === 'error' && isKeyless(one));
  const ofRequest = keyless.filter(({ element }) =>
    isOfRequest(errorIn(treeOfElements([element]), [], answer.hide)?.code),
  );
  const isWhole = keyless.length === elements.length && elements.length !== submitted;
  const whole = [...others, ...(isWhole ? keyless : ofRequest).map(({ element }) => element)];
  const { refusal, ...asGood } = answer;
  const error = errorAmong(whole, asGood);
  // The status says more than a text without a code.
  if (error !== undefined) return error.serviceCode === undefined ? (refusal ?? error) : error;
  return elements.length === 0 ? refusal : undefined;
}

function unanswered(
  [first, ...more]: readonly CredentialSubmission[],
  firstPosition: number,
  status: number,
  origin: string,
): CatchwordError {
  const name = first === undefined ? 'anything' : nameOf(first, firstPosition);
  const others = more.length === 0 ? '' : `, nor for the ${more.length} after it`;
  return new CatchwordError('SERVICE_ERROR', `${origin} did not answer for ${name}${others}`, {
    hint: `It is credential ${firstPosition} of what was submitted. Try again; if it stays so, leave it out.`,
    status,
  });
}

/**
 * The results for what was submitted, in its order; see credential-match.ts. An account whose element cannot be told from
 * those of others, or that was left out, is refused alone, with the code null.
 *
 * @param firstPosition of the first submission, from 1, for errors
 * @throws CatchwordError SERVICE_* where the whole request was refused; SERVICE_ERROR where no account was answered for, or
 *   with what was answered instead
 */
export function credentialResults(
  answer: XmlAnswer,
  submissions: readonly CredentialSubmission[],
  firstPosition: number,
): CredentialResult[] {
  const unwrapped = { ...answer, elements: answer.elements.map(withoutWrappers) };
  const { records, others, roots } = recordsIn(unwrapped.elements, 'credentials', ['credential', 'error']);
  const elements = records.map(elementFrom);
  const error = requestError(elements, others, submissions.length, answer);
  if (error !== undefined) throw error;
  const isEmpty = roots.some(
    ({ text, children, attributes }) => text === '' && children.length + attributes.size === 0,
  );
  if (elements.length === 0 && !isEmpty) throw unexpected('credentials', answer);
  if (elements.length === 0) throw unanswered(submissions, firstPosition, answer.status, answer.origin);
  const hasPlaces = inOneList(unwrapped.elements, new Set(records));
  const found = matched(elements, submissions, hasPlaces);
  return submissions.map((submission, place) => {
    const element = found[place];
    return element === undefined ? unclear(submission) : resultOf(element, submission, answer.hide);
  });
}
