import { CatchwordError } from '@catchword/base/errors';
import { recordOf } from '@catchword/base/record-of';
import type { XmlElement } from '@catchword/xml/read';
import { isName, writeXml } from '@catchword/xml/write';
import * as z from 'zod';
import { checkFirst } from '../errors/uncertain-write.ts';
import type { ParsedAnswer } from '../http/answer.ts';
import type { Caller } from '../http/caller.ts';
import { errorOf, fieldsOf, othersIn, recordsIn, unexpected } from '../http/xml-records.ts';
import { type CallOptions, callOptions, optionsOf, signalOf, UNCHECKED } from '../input/call-options.ts';
import { parseInput, UNCHECKED_HINT } from '../input/parse-input.ts';
import { name, type OptionsOf, only, text } from '../input/request-fields.ts';

/** Characters of a guid that an error shows. */
const MAX_GUID = 64;
/** Fields that only the service knows: other answers may repeat the others. */
const OWN_FIELDS = ['guid', 'access-token'];
const KNOWN = [...OWN_FIELDS, 'reference', 'email', 'password', 'first-name', 'last-name'];

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
const UNCHECKED_USER = only({
  ...recordOf(text.optional(), 'reference', 'email', 'password', 'firstName', 'lastName'),
  others: others.optional(),
});
const FULL_USER = only({ email: name, password: name, reference: z.undefined().optional(), ...NAMES });

/**
 * A user to create (interface, section 4.5; the shape is not shown there but known from public clients). A reference user
 * has a reference of the caller's choice, a full user an email address and a password. `others` are further child elements:
 * `redemption-code`, `promote-option`, `survey-option` …
 * @rule 4.5-8..9
 */
export type NewUser = Readonly<z.input<typeof REFERENCE_USER> | z.input<typeof FULL_USER>>;

/** A user whose fields the service is to judge. */
export type UncheckedUser = Readonly<z.input<typeof UNCHECKED_USER>>;

/** The body of `POST /v3/users`. @throws CatchwordError USAGE naming each invalid field */
function userXml(given: Partial<UncheckedUser> | null, unchecked: boolean): string {
  const checked = given?.reference === undefined ? FULL_USER : REFERENCE_USER;
  const schema = unchecked ? UNCHECKED_USER : checked;
  const hint = unchecked ? undefined : UNCHECKED_HINT;
  const { firstName, lastName, others: further, ...identity } = parseInput('the user', schema, given, hint);
  const fields = { ...identity, 'first-name': firstName, 'last-name': lastName, ...further };
  const content = Object.entries(fields).flatMap(([tag, text]) =>
    text === undefined ? [] : { name: tag, content: text },
  );
  return writeXml({ name: 'user', content });
}

const USER_OPTIONS = callOptions(UNCHECKED);

export type UserOptions = CallOptions & OptionsOf<typeof UNCHECKED>;

export type UserFor<Options> = Options extends { readonly unchecked: true } ? UncheckedUser : NewUser;

/** The fields of each user. Bodies without the root have been seen: then all elements are fields of one. */
function usersIn({ elements }: ParsedAnswer): readonly ReadonlyMap<string, string>[] {
  const { records, others } = recordsIn(elements, ['user']);
  const bare: XmlElement = { name: 'user', text: '', attributes: new Map(), children: others };
  return (records.length > 0 ? records : [bare]).map(fieldsOf);
}

/** @param write what was asked for, if it was not a read: its error says to check first */
function userFrom(answer: ParsedAnswer, write?: { readonly creates?: 'guid' }) {
  const [fields = new Map<string, string>()] = usersIn(answer);
  const field = (name: string): string | null => fields.get(name) || null;
  const guid = field('guid');
  const isNone = OWN_FIELDS.every((name) => field(name) === null);
  const error = errorOf(answer.elements, answer) ?? (isNone ? unexpected('user', answer) : undefined);
  if (error !== undefined) {
    const isCreated = write?.creates !== undefined && guid !== null;
    throw write ? checkFirst(error, write, isCreated ? `guid ${answer.hide(guid, MAX_GUID)}` : undefined) : error;
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

/** The user that was asked for. The token of another one would be used for this one. */
function readUser(answer: ParsedAnswer, id: string): User {
  const user = userFrom(answer);
  const { length } = usersIn(answer);
  const names = [user.guid, user.reference, user.email];
  const isOther = names.every((name) => name !== null && name.toLowerCase() !== id.toLowerCase());
  if (length <= 1 && !isOther) return user;
  const found = length > 1 ? `${length} users` : 'another user';
  throw new CatchwordError('SERVICE_ERROR', `${answer.origin} answered with ${found} instead of the one asked for`, {
    hint: 'Read the user by its guid.',
    status: answer.status,
  });
}

/** A user as the service describes it. Missing and empty fields are null. */
export type User = Readonly<ReturnType<typeof userFrom>>;

/** The interface does not show the answer to a reset: it is empty, or the user with the guid and the new token. */
function resetFrom(answer: ParsedAnswer): Pick<User, 'guid' | 'accessToken'> {
  return answer.text.trim() === '' ? { guid: null, accessToken: null } : userFrom(answer, {});
}

/** Each throws CatchwordError USAGE, SOURCE_*, SERVICE_*, XML_INVALID, INTERRUPTED. @param suffix of paths, or empty */
export function createUsers(caller: Caller, suffix: string) {
  const path = `/v3/users${suffix}`;
  const common = { format: 'xml', token: false, repeatable: true } as const;
  return {
    /** `POST /v3/users` (interface, section 4.5). Not retried once it was sent: the user may exist then. */
    create: async <O extends UserOptions>(user: UserFor<O>, options?: O): Promise<User> => {
      const { signal, unchecked } = optionsOf(USER_OPTIONS, options);
      const body = userXml(user, unchecked);
      const secrets = user.password === undefined ? [] : [user.password];
      const create = { ...common, method: 'POST', path, repeatable: false, creates: 'guid', body, secrets } as const;
      return await caller.call({ ...create, read: (answer) => userFrom(answer, { creates: 'guid' }) }, signal);
    },
    /** `GET /v3/users/:id`. An unknown user is SERVICE_UNKNOWN_USER or NOT_FOUND. @param id guid, reference or email */
    read: async (id: string, options?: CallOptions): Promise<User> => {
      const read = (answer: ParsedAnswer) => readUser(answer, id);
      const one = { path: `${path}/:user_id`, values: { user_id: id } };
      return await caller.call({ ...common, ...one, method: 'GET', read }, signalOf(options));
    },
    /** `POST /v3/users/reset_access` (interface, section 5 rule 3): invalidates the access token of the request. */
    reset: async (options?: CallOptions): Promise<ReturnType<typeof resetFrom>> => {
      const reset = { ...common, method: 'POST', path: `/v3/users/reset_access${suffix}`, token: true } as const;
      return await caller.call({ ...reset, read: resetFrom }, signalOf(options));
    },
  };
}
