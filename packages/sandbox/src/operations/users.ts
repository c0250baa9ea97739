import { recordOf } from '@catchword/base/record-of';
import type { XmlElement } from '@catchword/xml/read';
import { writeXml } from '@catchword/xml/write';
import * as z from 'zod';
import type { User } from '../accounts/accounts.ts';
import { malformed, parseXml } from '../http/body.ts';
import type { Operation, OperationRequest } from '../http/operation.ts';
import { CODES, codeRejection, elementsOf, Rejection, type Reply, xmlReply } from '../http/reply.ts';
import { validate } from '../http/validate.ts';
import type { Stores } from '../sandbox-stores.ts';

/** Child elements of `user`. Others (`promote-option`, `survey-option`) have no effect. */
const newUser = z
  .object({
    email: z.email('must be an email address').optional(),
    ...recordOf(z.string().optional(), 'reference', 'password', 'first-name', 'last-name', 'redemption-code'),
  })
  .superRefine(({ reference, email, password }, context) => {
    const reject = (name: string, message: string) => context.addIssue({ code: 'custom', path: [name], message });
    const isFull = reference === undefined;
    if (!isFull && password !== undefined) reject('password', 'is not allowed for a reference user');
    if (isFull && email === undefined) reject('reference', 'is required, or an email and a password');
    if (isFull && password === undefined) reject('password', 'is required for a user without a reference');
  })
  .meta({ xml: { name: 'user' } });

/** Interface, 4.5; as live services answer. @rule 4.5-8..9, 5-7 */
export const userResponse = z
  .object(recordOf(z.string(), 'email', 'first-name', 'last-name', 'guid', 'access-token', 'reference'))
  .meta({ xml: { name: 'user' } });

/** An empty element counts as omitted. */
function fieldsOf({ children }: XmlElement): Record<string, string> {
  const fields = new Map<string, string>();
  for (const { name, text: value } of children) {
    if (fields.has(name)) throw malformed('user', `the element ${name} occurs twice`);
    if (value !== '') fields.set(name, value);
  }
  return Object.fromEntries(fields);
}

function parse(body: Buffer): z.infer<typeof newUser> {
  return validate(newUser, fieldsOf(parseXml(body, 'user')), 422, { code: CODES.malformed });
}

function userReply(user: User): Reply {
  const content = elementsOf({
    email: user.email,
    'first-name': user.firstName,
    'last-name': user.lastName,
    guid: user.guid,
    'access-token': user.accessToken,
    reference: user.reference ?? '',
  });
  return xmlReply({ name: 'user', content });
}

/** Returns a body that creates the same user and holds nothing else. It is empty if the body creates none. */
function redact(body: Buffer): Buffer {
  try {
    const fields = parse(body);
    const password = fields.password === undefined ? undefined : 'redacted';
    return Buffer.from(writeXml({ name: 'user', content: elementsOf({ ...fields, password }) }));
  } catch (error) {
    if (error instanceof Rejection) return Buffer.alloc(0);
    throw error;
  }
}

/** The paths of interface 4.5 have no `.xml`; live services have it. */
export function userOperations({ directory }: Stores): Operation[] {
  /** The password is not kept: no operation of the interface asks for it again. */
  function create({ body, apiKey }: OperationRequest): Reply {
    const { reference, email, 'redemption-code': code, 'first-name': firstName, 'last-name': lastName } = parse(body);
    const members = directory.of(apiKey);
    const profile = { reference, email, firstName, lastName };
    const taken = members.accounts.taken(profile);
    if (taken !== null) throw codeRejection(409, CODES.alreadyInUse, `The ${taken} is already in use`);
    const granted = code === undefined ? null : directory.redeem(code);
    const user = members.accounts.create(profile);
    if (granted !== null) directory.grant(members, user, granted);
    return userReply(user);
  }

  function read({ values: { id = '' }, apiKey }: OperationRequest): Reply {
    const { accounts } = directory.of(apiKey);
    const user = accounts.byGuid(id) ?? accounts.byReference(id) ?? accounts.byEmail(id);
    if (user === null) throw codeRejection(404, CODES.userNotFound);
    return userReply(user);
  }

  /** Accepts a stale token: it still shows who asks. */
  function resetAccess({ accessToken, apiKey }: OperationRequest): Reply {
    const { accounts } = directory.of(apiKey);
    const holder = accounts.byToken(accessToken ?? '');
    if (holder === null) throw codeRejection(404, CODES.userNotFound);
    accounts.reset(holder.user);
    return xmlReply({ name: 'user', content: [{ name: 'guid', content: holder.user.guid }] });
  }

  const common = { section: '4.5', token: false, format: 'xml' } as const;
  const user = { ...common, response: userResponse };
  return ['.xml', ''].flatMap((suffix): Operation[] => {
    const path = `/v3/users${suffix}`;
    const resetPath = `/v3/users/reset_access${suffix}`;
    const reset = "Reset a user's access token";
    return [
      { ...user, method: 'POST', path, summary: 'Create a user', request: newUser, redact, run: create },
      { ...user, method: 'GET', path: `${path}/:id`, summary: 'Read a user', run: read },
      { ...common, method: 'POST', path: resetPath, summary: reset, token: 'any', run: resetAccess },
    ];
  });
}
