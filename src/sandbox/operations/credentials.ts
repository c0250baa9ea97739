import { CatchwordError } from '../../errors.ts';
import type { XmlElement } from '../../xml/read.ts';
import type { XmlTree } from '../../xml/write.ts';
import type { Accounts, User } from '../accounts/accounts.ts';
import type { Directory } from '../accounts/api-keys.ts';
import { CODES, codeAnswer, MESSAGES } from '../http/error-codes.ts';
import type { Operation, OperationRequest } from '../http/operation.ts';
import { type Answer, xmlAnswer } from '../http/response.ts';
import { readXmlBody } from '../http/xml-body.ts';
import { credentialsRequest, credentialsResponse } from './xml-schemas.ts';

/** Records in one request (interface, section 8). */
const MAX_CREDENTIALS = 10_000;
/** What the submission matrix (interface, 4.3) has no yes for. */
const NOT_SUBMITTED = ['email', 'password'] as const;

/** A user, or why there is none. */
type Verified = User | { readonly code: number; readonly message?: string };

function malformed(message: string): Verified {
  return { code: CODES.malformed, message: `Malformed credentials request: ${message}` };
}

/** Those named by reference and guid; null for each that names nobody. */
function named(accounts: Accounts, reference: string | null, guid: string | null): (User | null)[] {
  return [
    ...(reference === null ? [] : [accounts.byReference(reference)]),
    ...(guid === null ? [] : [accounts.byGuid(guid)]),
  ];
}

/** What is sent has to name one and the same user; a token, if sent, has to be the current one. */
function verify(accounts: Accounts, { attributes }: XmlElement): Verified {
  const value = (name: string) => attributes.get(name) || null;
  const refused = NOT_SUBMITTED.find((name) => value(name) !== null);
  if (refused !== undefined) return malformed(`${refused} is not submitted`);
  const [reference, guid, token] = [value('reference'), value('guid'), value('access-token')];
  const users = named(accounts, reference, guid);
  const holder = token === null ? null : accounts.byToken(token);
  if (users.length === 0 && token === null) return malformed('one of reference, guid, access-token is needed');
  if (users.includes(null)) return { code: CODES.referenceUnknown };
  // A token that never was is none of the user that is named beside it.
  if (users.length > 0 && token !== null && holder === null) return { code: CODES.tokenNotValid };
  const [user = null, ...others] = holder === null ? users : [...users, holder.user];
  if (user === null || others.some((other) => other?.number !== user.number)) {
    return { code: CODES.referenceUnknown, message: 'What is sent names no user, or more than one' };
  }
  return holder?.state === 'stale' ? { code: CODES.tokenNotValid } : user;
}

function credential({ email, accessToken, guid, reference }: User): XmlTree {
  return {
    name: 'credential',
    attributes: { email, 'access-token': accessToken, guid, reference: reference ?? '' },
  };
}

/** In place of a credential. Repeats what was sent but the token, which is a secret. */
function failure(code: number, message: string, { attributes }: XmlElement): XmlTree {
  const sent = (name: string) => attributes.get(name) ?? '';
  const echo = { reference: sent('reference'), guid: sent('guid'), email: sent('email') };
  return { name: 'error', attributes: { code: String(code), message, ...echo } };
}

/** Services write failed elements with an end tag. In what is written, `>` ends a tag and nothing else. */
function withEndTags(answer: Answer): Answer {
  return { ...answer, body: answer.body.replaceAll(/<error( [^<>]*)\/>/g, '<error$1></error>') };
}

/** @throws CatchwordError XML_INVALID */
function credentialsOf(body: Buffer): readonly XmlElement[] {
  const { children } = readXmlBody(body, 'credentials');
  const other = children.find(({ name }) => name !== 'credential');
  if (other !== undefined) throw new CatchwordError('XML_INVALID', 'credentials holds other elements than credential');
  if (children.length === 0) throw new CatchwordError('XML_INVALID', 'one credential at least is needed');
  if (children.length > MAX_CREDENTIALS) {
    const needed = `at most ${MAX_CREDENTIALS} credentials are taken, not ${children.length}`;
    throw new CatchwordError('XML_INVALID', needed);
  }
  return children;
}

function verifyAll(accounts: Accounts, { body }: OperationRequest): Answer {
  let elements: readonly XmlElement[];
  try {
    elements = credentialsOf(body);
  } catch (error) {
    if (!(error instanceof CatchwordError)) throw error;
    return codeAnswer(400, CODES.malformed, `Malformed credentials request: ${error.message}`);
  }
  const content = elements.map((element) => {
    const verified = verify(accounts, element);
    if ('guid' in verified) return credential(verified);
    return failure(verified.code, verified.message ?? MESSAGES[verified.code] ?? '', element);
  });
  return withEndTags(xmlAnswer(200, { name: 'credentials', content }));
}

/** Interface, 4.3. */
export function credentialOperations(directory: Directory): Operation[] {
  return [
    {
      method: 'POST',
      path: '/v3/credentials.xml',
      section: '4.3',
      summary: 'Verify credentials',
      token: false,
      format: 'xml',
      changes: false,
      request: credentialsRequest,
      response: credentialsResponse,
      operate: (request) => verifyAll(directory.of(request.apiKey).accounts, request),
    },
  ];
}
