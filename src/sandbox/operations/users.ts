import { z } from 'zod';
import { CatchwordError } from '../../errors.ts';
import type { XmlElement } from '../../xml/read.ts';
import { writeXml, type XmlTree } from '../../xml/write.ts';
import type { User } from '../accounts/accounts.ts';
import type { Directory } from '../accounts/api-keys.ts';
import { CODES, codeAnswer } from '../http/error-codes.ts';
import type { Operation, OperationRequest } from '../http/operation.ts';
import { type Answer, xmlAnswer } from '../http/response.ts';
import { readXmlBody } from '../http/xml-body.ts';
import { userResponse } from './xml-schemas.ts';

/** Longer ones make no sense; for comfort. */
const MAX_CHARS = 255;
const text = z.string().max(MAX_CHARS, `at most ${MAX_CHARS} characters are taken`).optional();

/** Child elements of `user`. What else is sent (`promote-option`, `survey-option`) changes nothing here. */
const newUser = z
  .object({
    reference: text,
    email: z.email('is no address').optional(),
    password: text,
    'first-name': text,
    'last-name': text,
    'redemption-code': text,
  })
  .refine(({ reference, password }) => reference === undefined || password === undefined, {
    path: ['password'],
    error: 'reference users have none',
  })
  .refine(({ reference, email }) => reference !== undefined || email !== undefined, {
    path: ['reference'],
    error: 'a reference, or an email and a password, are needed',
  })
  .refine(({ reference, password }) => reference !== undefined || password !== undefined, {
    path: ['password'],
    error: 'is needed by a user without a reference',
  })
  .meta({ xml: { name: 'user' } });

type NewUser = z.infer<typeof newUser>;

/** Empty elements count as left out. @throws CatchwordError XML_INVALID where one is there twice */
function fieldsOf({ children }: XmlElement): Record<string, string> {
  const fields = new Map<string, string>();
  for (const { name, text: value } of children) {
    if (fields.has(name)) throw new CatchwordError('XML_INVALID', 'an element is there twice');
    if (value !== '') fields.set(name, value);
  }
  return Object.fromEntries(fields);
}

function userAnswer(user: User): Answer {
  const element = (name: string, content: string): XmlTree => ({ name, content });
  const content = [
    element('email', user.email),
    element('first-name', user.firstName),
    element('last-name', user.lastName),
    element('guid', user.guid),
    element('access-token', user.accessToken),
    element('reference', user.reference ?? ''),
  ];
  return xmlAnswer(200, { name: 'user', content });
}

/** The password is not read: no operation of the interface asks for it again. */
function createUser(directory: Directory, apiKey: string, asked: NewUser): Answer {
  const members = directory.of(apiKey);
  const { reference, email, 'redemption-code': code } = asked;
  const profile = { reference, email, firstName: asked['first-name'], lastName: asked['last-name'] };
  const taken = members.accounts.taken(profile);
  if (taken !== null) return codeAnswer(409, CODES.alreadyInUse, `The ${taken} is already in use`);
  const refusal = code === undefined ? null : directory.redemption.refusal(code);
  if (refusal !== null) return codeAnswer(200, refusal);
  const user = members.accounts.create(profile);
  const grants = code === undefined ? [] : directory.redemption.redeem(code);
  for (const grant of grants) directory.grant(members, user, grant);
  return userAnswer(user);
}

/** @returns what is asked for, or the answer that refuses it */
function parse(body: Buffer): { readonly fields: NewUser } | { readonly refused: Answer } {
  let asked: ReturnType<typeof newUser.safeParse>;
  try {
    asked = newUser.safeParse(fieldsOf(readXmlBody(body, 'user')));
  } catch (error) {
    if (!(error instanceof CatchwordError)) throw error;
    return { refused: codeAnswer(400, CODES.malformed, `Malformed user request: ${error.message}`) };
  }
  if (asked.success) return { fields: asked.data };
  const issues = asked.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
  return { refused: codeAnswer(422, CODES.malformed, issues.join('; ')) };
}

function create(directory: Directory, { body, apiKey }: OperationRequest): Answer {
  const asked = parse(body);
  return 'refused' in asked ? asked.refused : createUser(directory, apiKey, asked.fields);
}

/** Creates the same user, and holds nothing else that was sent; nothing where the body creates none. */
function withoutPassword(body: Buffer): Buffer {
  const asked = parse(body);
  if ('refused' in asked) return Buffer.alloc(0);
  const { password, ...fields } = asked.fields;
  const kept = { ...fields, password: password === undefined ? undefined : 'not kept' };
  const content = Object.entries(kept).flatMap(([name, value]) =>
    value === undefined ? [] : { name, content: value },
  );
  return Buffer.from(writeXml({ name: 'user', content }));
}

function read(directory: Directory, { values, apiKey }: OperationRequest): Answer {
  const id = values.id ?? '';
  const { accounts } = directory.of(apiKey);
  const user = accounts.byGuid(id) ?? accounts.byReference(id) ?? accounts.byEmail(id);
  return user === null ? codeAnswer(404, CODES.userNotFound) : userAnswer(user);
}

/** Takes a stale token: whose it was still says who asks. */
function resetAccess(directory: Directory, { accessToken, apiKey }: OperationRequest): Answer {
  const { accounts } = directory.of(apiKey);
  const holder = accounts.byToken(accessToken ?? '');
  if (holder === null) return codeAnswer(404, CODES.userNotFound);
  accounts.reset(holder.user);
  return xmlAnswer(200, { name: 'user', content: [{ name: 'guid', content: holder.user.guid }] });
}

/** Interface, 4.5, where the paths have no `.xml`, and live services, where they have. */
export function userOperations(directory: Directory): Operation[] {
  const common = { section: '4.5', token: false, format: 'xml' } as const;
  return ['.xml', ''].flatMap((suffix): Operation[] => [
    {
      ...{ ...common, method: 'POST', path: `/v3/users${suffix}`, summary: 'Create a user' },
      request: newUser,
      response: userResponse,
      kept: withoutPassword,
      operate: (request) => create(directory, request),
    },
    {
      ...{ ...common, method: 'GET', path: `/v3/users${suffix}/:id`, summary: 'Read a user' },
      response: userResponse,
      operate: (request) => read(directory, request),
    },
    {
      ...{ ...common, method: 'POST', path: `/v3/users/reset_access${suffix}`, summary: "Reset a user's access token" },
      token: 'any',
      operate: (request) => resetAccess(directory, request),
    },
  ]);
}
