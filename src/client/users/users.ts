import { z } from 'zod';
import { isName, writeXml } from '../../xml/write.ts';
import { isErrorName } from '../errors/error-message.ts';
import { treeOfBody, treeOfElements } from '../errors/error-tree.ts';
import { alsoCreated, checkFirst } from '../errors/uncertain-write.ts';
import type { ParsedAnswer } from '../http/answer.ts';
import type { Caller } from '../http/caller.ts';
import { errorOfTree, fieldsOf, othersIn, recordsIn, unexpected } from '../http/xml-records.ts';
import { type CallOptions, signalOf } from '../input/call-options.ts';
import { parseInput } from '../input/parse-input.ts';
import { name, only, text } from '../input/request-fields.ts';

/** Characters of a guid that an error shows. */
const MAX_GUID = 64;
const KNOWN = ['email', 'password', 'first-name', 'last-name', 'guid', 'access-token', 'reference'];

const others = z.record(z.string(), text, 'must be an object of texts').superRefine((fields, context) => {
  for (const tag of Object.keys(fields).filter((one) => !isName(one) || KNOWN.includes(one))) {
    const message = KNOWN.includes(tag)
      ? 'must be given by its own field'
      : 'must be a name of an XML element: letters, digits, -, _ and ., starting with a letter or _';
    // The value may be a secret.
    context.addIssue({ code: 'custom', message, input: tag });
  }
});

const omitted = z.undefined('must be omitted: a user has either a reference, or an email and a password').optional();
const NAMES = { firstName: name, lastName: name, others: others.optional() };
const REFERENCE_USER = only({ reference: name, email: omitted, password: omitted, ...NAMES });
const FULL_USER = only({ email: name, password: name, reference: z.undefined().optional(), ...NAMES });

/**
 * A user to create (interface, section 4.5; the shape is not shown there but known from public clients). A reference user
 * has a reference of the caller's choice, a full user an email address and a password. `others` are further child elements:
 * `redemption-code`, `promote-option`, `survey-option` …
 * @rule 4.5-8..9
 */
export type NewUser = Readonly<z.input<typeof REFERENCE_USER> | z.input<typeof FULL_USER>>;

/** The body of `POST /v3/users`. @throws CatchwordError USAGE naming each invalid field */
function userXml(given: Partial<NewUser> | null): string {
  const schema = given?.reference === undefined ? FULL_USER : REFERENCE_USER;
  const { firstName, lastName, others: further, ...identity } = parseInput('the user', schema, given);
  const fields = { ...identity, 'first-name': firstName, 'last-name': lastName, ...further };
  const content = Object.entries(fields).flatMap(([tag, text]) =>
    text === undefined ? [] : { name: tag, content: text },
  );
  return writeXml({ name: 'user', content });
}

/** Fields that only the service knows: an error may repeat the others. */
const OWN_FIELDS = ['guid', 'access-token'];

function userFrom(answer: ParsedAnswer, isNew: boolean) {
  const { records, others: around } = recordsIn(answer.elements, 'user', ['user']);
  const [root] = records;
  // Bodies without the root have been seen.
  const members = root?.children ?? around;
  const fields = new Map([
    ...(root?.attributes ?? []),
    ...members.map(({ name, text: value }) => [name, value] as const),
  ]);
  const field = (name: string): string | null => fields.get(name) || null;
  const guid = field('guid');
  const isUser = guid !== null || field('access-token') !== null;
  const errors = isUser
    ? [...around, ...(root?.children ?? []).filter(({ name }) => isErrorName(name))]
    : answer.elements;
  const error = errorOfTree(treeOfElements(errors), answer, OWN_FIELDS);
  if (error !== undefined) {
    throw isNew && guid !== null ? alsoCreated(error, `guid ${answer.hide(guid, MAX_GUID)}`) : error;
  }
  if (!isUser && field('reference') === null && field('email') === null) {
    const none = unexpected('user', answer);
    throw isNew ? checkFirst(none, { creates: 'guid' }) : none;
  }
  return {
    email: field('email'),
    firstName: field('first-name'),
    lastName: field('last-name'),
    guid,
    accessToken: field('access-token'),
    reference: field('reference'),
    /** All other fields, by the names of the service. */
    others: othersIn(fields, KNOWN),
  };
}

/** A user as the service describes it. Missing and empty fields are null. */
export type User = Readonly<ReturnType<typeof userFrom>>;

/** The interface does not show the answer to a reset: it is empty, or the user. */
function checkReset(answer: ParsedAnswer): void {
  const error = errorOfTree(treeOfBody(answer.text), answer);
  if (error !== undefined) throw error;
  const { records } = recordsIn(answer.elements, 'user', ['user']);
  const isUser = records.some((user) => OWN_FIELDS.some((field) => fieldsOf(user).has(field)));
  if (answer.text.trim() !== '' && !isUser) throw checkFirst(unexpected('user', answer), {});
}

/**
 * Users of the service. Each throws CatchwordError USAGE, SOURCE_*, SERVICE_*, XML_INVALID, INTERRUPTED.
 * @param suffix of the paths: `.xml`, or empty
 */
export function createUsers(caller: Caller, suffix: string) {
  const path = `/v3/users${suffix}`;
  const common = { format: 'xml', token: false, repeatable: true } as const;
  return {
    /** `POST /v3/users` (interface, section 4.5). Not retried once it was sent: the user may exist then. */
    create: async (user: NewUser, options?: CallOptions): Promise<User> => {
      const body = userXml(user);
      const secrets = user.password === undefined ? [] : [user.password];
      const create = { ...common, method: 'POST', path, repeatable: false, creates: 'guid', body, secrets } as const;
      return await caller.call({ ...create, read: (answer) => userFrom(answer, true) }, signalOf(options));
    },
    /**
     * `GET /v3/users/:id`. An unknown user is SERVICE_UNKNOWN_USER or NOT_FOUND.
     * @param id guid, reference or email
     */
    read: async (id: string, options?: CallOptions): Promise<User> => {
      const read = (answer: ParsedAnswer) => userFrom(answer, false);
      const one = { path: `${path}/:user_id`, values: { user_id: id } };
      return await caller.call({ ...common, ...one, method: 'GET', read }, signalOf(options));
    },
    /** `POST /v3/users/reset_access` (interface, section 5 rule 3): invalidates the access token of the request. */
    reset: async (options?: CallOptions): Promise<void> => {
      const reset = { ...common, method: 'POST', path: `/v3/users/reset_access${suffix}`, token: true } as const;
      await caller.call({ ...reset, read: checkReset }, signalOf(options));
    },
  };
}
