import { CatchwordError } from '../../errors.ts';
import type { XmlElement } from '../../xml/read.ts';
import type { XmlAnswer } from '../answer.ts';
import { saidByElements } from '../said.ts';
import type { Hide } from '../secrets.ts';
import { attribute, errorIn, otherAttributes, recordsIn, unexpected } from '../xml-answer.ts';
import { type CredentialResult, type CredentialSubmission, nameOf } from './credential.ts';
import { contradicts, type Element, elementFrom, matched } from './credential-match.ts';

/** Codes that are about the request: malformed, or HTTP's own. The service's codes from 468 to 474 are about a user. */
function isOfRequest(code: number | undefined): boolean {
  return code === 650 || (code !== undefined && code >= 400 && code < 600 && !(code >= 468 && code <= 474));
}

const KNOWN = ['reference', 'guid', 'access-token', 'email'];

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
 * The result where there is an element for each submission and none of them is known to be this one's: nobody can tell, so
 * no credential is handed out.
 * @param there the element at its place, unless it is another's; an error says what it says
 */
function unclear(there: Element | undefined, submitted: CredentialSubmission, hide: Hide): CredentialResult {
  const said = there === undefined ? undefined : saidByElements([there.element], hide);
  const message = said?.text || 'the service did not make clear which of its answers is about this account';
  const about = { reference: submitted.reference ?? null, guid: submitted.guid ?? null };
  return { ok: false, code: said?.code ?? null, message, ...about };
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
 * The results for what was submitted, in its order; see credential-match.ts. An account whose element cannot be told from
 * those of others is refused alone, with the code null.
 *
 * @param firstPosition of the first submission, from 1, for errors
 * @throws CatchwordError SERVICE_* where the whole request was refused; SERVICE_ERROR naming the first account that was
 *   not answered for, or with what was answered instead
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
  const isEmpty = roots.length > 0 && saidByElements(others, answer.hide, true) === undefined;
  if (elements.length === 0 && !isEmpty) throw unexpected('credentials', answer, origin);
  const { found, placed } = matched(elements, submissions);
  const used = new Set(found);
  return submissions.map((submission, index) => {
    const element = found[index];
    if (element !== undefined) return resultOf(element, submission, answer.hide);
    const there = placed[index];
    if (there !== undefined && !contradicts(there, submission)) {
      return unclear(used.has(there) ? undefined : there, submission, answer.hide);
    }
    const position = firstPosition + index;
    throw new CatchwordError('SERVICE_ERROR', `${origin} did not answer for ${nameOf(submission, position)}`, {
      hint: `It is credential ${position} of what was submitted. Try again; if it stays so, leave it out.`,
      status: answer.status,
    });
  });
}
