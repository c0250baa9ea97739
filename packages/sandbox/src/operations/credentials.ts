import type { XmlElement } from '@catchword/xml/read';
import type { XmlTree } from '@catchword/xml/write';
import * as z from 'zod';
import type { Accounts, User } from '../accounts/accounts.ts';
import { malformed, parseXml } from '../http/body.ts';
import type { Operation, OperationRequest } from '../http/operation.ts';
import { attribute, CODES, codeRejection, Rejection, type Reply, xmlReply } from '../http/reply.ts';
import type { Stores } from '../sandbox-stores.ts';

/** Records in one request (interface, section 8). */
const MAX_CREDENTIALS = 10_000;
/** The columns of the submission matrix (interface, 4.3) without a yes. */
const NOT_SUBMITTED = ['email', 'password'] as const;

/** At least one of them identifies a user. */
const submitted = z
  .object({ reference: attribute, guid: attribute, 'access-token': attribute })
  .partial()
  .meta({ xml: { name: 'credential' } });
const verified = z
  .object({ email: attribute, 'access-token': attribute, guid: attribute, reference: attribute })
  .meta({ xml: { name: 'credential' } });
const failed = z
  .object({ code: attribute, message: attribute, reference: attribute, guid: attribute, email: attribute })
  .meta({ xml: { name: 'error' } });

/** Interface, 4.3. @rule 2.4-1, 2.4-3, 4.3-1..7, 4.3-10, 8-1 */
export const credentialsRequest = z
  .object({ credential: z.array(submitted).min(1).max(MAX_CREDENTIALS) })
  .meta({ xml: { name: 'credentials' } });
export const credentialsResponse = z
  .object({ credential: z.array(verified), error: z.array(failed) })
  .meta({ xml: { name: 'credentials' } });

/** All attributes must name the same user, and a token must be the current one. @throws Rejection for the record */
function verify(accounts: Accounts, { attributes }: XmlElement): User {
  const value = (name: string) => attributes.get(name) || null;
  const extra = NOT_SUBMITTED.find((name) => value(name) !== null);
  if (extra !== undefined) throw malformed('credentials', `${extra} is not submitted`);
  const [reference, guid, token] = [value('reference'), value('guid'), value('access-token')];
  const users: (User | null)[] = [];
  if (reference !== null) users.push(accounts.byReference(reference));
  if (guid !== null) users.push(accounts.byGuid(guid));
  const holder = token === null ? null : accounts.byToken(token);
  if (users.length === 0 && token === null) {
    throw malformed('credentials', 'reference, guid or access-token is required');
  }
  if (users.includes(null)) throw codeRejection(200, CODES.referenceUnknown);
  // An unknown token cannot belong to a user who is named by reference or guid.
  if (users.length > 0 && token !== null && holder === null) throw codeRejection(200, CODES.tokenNotValid);
  const [user = null, ...others] = holder === null ? users : [...users, holder.user];
  if (user === null || others.some((other) => other?.number !== user.number)) {
    throw codeRejection(200, CODES.referenceUnknown, 'The attributes name no user, or more than one');
  }
  if (holder?.state === 'stale') throw codeRejection(200, CODES.tokenNotValid);
  return user;
}

function credential({ email, accessToken, guid, reference }: User): XmlTree {
  const attributes = { email, 'access-token': accessToken, guid, reference: reference ?? '' };
  return { name: 'credential', attributes };
}

/** Replaces a credential that failed. Repeats the attributes except the token, which is a secret. */
function failure({ message, details }: Rejection, { attributes }: XmlElement): XmlTree {
  const sent = (name: string) => attributes.get(name) ?? '';
  const echo = { reference: sent('reference'), guid: sent('guid'), email: sent('email') };
  return { name: 'error', attributes: { code: String(details.code), message, ...echo } };
}

function credentialsOf(body: Buffer): readonly XmlElement[] {
  const { children } = parseXml(body, 'credentials');
  const count = children.length;
  if (children.some(({ name }) => name !== 'credential')) {
    throw malformed('credentials', 'credentials holds other elements than credential');
  }
  if (count === 0) throw malformed('credentials', 'at least one credential is required');
  if (count > MAX_CREDENTIALS) {
    throw malformed('credentials', `at most ${MAX_CREDENTIALS} credentials are taken, not ${count}`);
  }
  return children;
}

function verifyAll(accounts: Accounts, { body }: OperationRequest): Reply {
  const content = credentialsOf(body).map((element) => {
    try {
      return credential(verify(accounts, element));
    } catch (error) {
      if (error instanceof Rejection) return failure(error, element);
      throw error;
    }
  });
  const reply = xmlReply({ name: 'credentials', content });
  // Services write failed elements with an end tag. The XML writer escapes each `>` that does not end a tag.
  return { ...reply, body: reply.body.replaceAll(/<error( [^<>]*)\/>/g, '<error$1></error>') };
}

export function credentialOperation({ directory }: Stores): Operation {
  return {
    method: 'POST',
    path: '/v3/credentials.xml',
    section: '4.3',
    summary: 'Verify credentials',
    token: false,
    format: 'xml',
    changes: false,
    request: credentialsRequest,
    response: credentialsResponse,
    run: (request) => verifyAll(directory.of(request.apiKey).accounts, request),
  };
}
