import { CatchwordError } from '@catchword/base/errors';
import type { Hide } from '@catchword/base/redact';
import type { XmlElement } from '@catchword/xml/read';
import { errorInXml } from '../errors/error-message.ts';
import type { XmlAnswer } from '../http/answer.ts';
import { errorOf, othersIn, recordsIn, unexpected } from '../http/xml-records.ts';
import { type Element, elementFrom, matched } from './match.ts';
import type { CredentialResult, CredentialSubmission } from './submission.ts';

const ELEMENTS = ['credential', 'error'];
const KNOWN = ['reference', 'guid', 'access-token', 'email'];

function resultOf(found: Element | undefined, submitted: CredentialSubmission, hide: Hide): CredentialResult {
  const reference = found?.reference ?? submitted.reference ?? null;
  const guid = found?.guid ?? submitted.guid ?? null;
  if (found === undefined) {
    const message = 'the answer of the service does not show which account it is about';
    return { ok: false, code: null, message, reference, guid };
  }
  const { element, fields, accessToken } = found;
  const said = errorInXml([element], hide);
  if (accessToken !== null && said === undefined) {
    const others = othersIn(fields, KNOWN);
    return { ok: true, reference, guid, accessToken, email: fields.get('email') || null, others };
  }
  const message = said?.text || (element.name === 'error' ? '' : 'the service gave no access token');
  return { ok: false, code: said?.code ?? null, message, reference, guid };
}

/** Whether a code is about the request: 650, and the codes of HTTP. Codes from 468 to 474 are about a user. */
function isOfRequest(code = 0): boolean {
  return code === 650 || (code >= 400 && code < 600 && !(code >= 468 && code <= 474));
}

/** The errors of the whole request: errors without keys, if their code or their number shows that no account has them. */
function wholeErrors(elements: readonly Element[], submitted: number, hide: Hide): XmlElement[] {
  const keyless = elements
    .filter(({ reference, guid, accessToken }) => !(reference ?? guid ?? accessToken))
    .flatMap(({ element }) => (element.name === 'error' ? [element] : []));
  if (keyless.length === elements.length && elements.length !== submitted) return keyless;
  return keyless.filter((element) => isOfRequest(errorInXml([element], hide)?.code));
}

/**
 * The results of the submissions, in their order; match.ts decides which element is about which.
 * @param firstPosition of the first submission, from 1, for errors
 * @throws CatchwordError SERVICE_* if the request was refused as a whole; SERVICE_ERROR if no account was answered
 * @rule 2.4-1, 4.3-4, 4.3-10, 7-5..6
 */
export function credentialResults(
  answer: XmlAnswer,
  submissions: readonly CredentialSubmission[],
  firstPosition: number,
): CredentialResult[] {
  const { records, others } = recordsIn(answer.elements, ELEMENTS);
  const elements = records.map(elementFrom);
  const error = errorOf([...others, ...wholeErrors(elements, submissions.length, answer.hide)], answer);
  // The status says more than a text without a code.
  if (error !== undefined) throw error.serviceCode === undefined ? (answer.refusal ?? error) : error;
  if (elements.length === 0) {
    if (answer.refusal !== undefined) throw answer.refusal;
    if (!answer.elements.some(({ name }) => name === 'credentials')) throw unexpected('credentials', answer);
    const range = `${firstPosition} to ${firstPosition + submissions.length - 1}`;
    const message = `${answer.origin} did not answer for any of the credentials ${range}`;
    throw new CatchwordError('SERVICE_ERROR', message, {
      hint: 'Try again later. If the error stays, verify these accounts one at a time to find the cause.',
      status: answer.status,
    });
  }
  const lists = [answer.elements, ...answer.elements.map(({ children }) => children)];
  const isOneList = lists.some((list) => list.filter(({ name }) => ELEMENTS.includes(name)).length === records.length);
  const found = matched(elements, submissions, isOneList);
  return submissions.map((submission, place) => resultOf(found[place], submission, answer.hide));
}
