import { CatchwordError } from '../../errors.ts';
import { writeXml, type XmlTree } from '../../xml/write.ts';
import { isErrorName } from '../errors/error-messages.ts';
import { lookFirst, mayExist } from '../errors/uncertain-write.ts';
import { pathPart } from '../http/path-segment.ts';
import type { Caller } from '../http/requester.ts';
import type { XmlAnswer } from '../http/response.ts';
import { errorIn, othersIn, recordsIn, unexpected } from '../http/xml-records.ts';
import { checkUserFields } from '../operations/user-fields.ts';

/**
 * A user to create (interface, section 4.5; shape not shown, so as public clients send it). A reference user has a
 * reference of the caller's choice; a full user has an email address and a password.
 */
export type NewUser = UserNames &
  (
    | { readonly reference: string; readonly email?: undefined; readonly password?: undefined }
    | { readonly email: string; readonly password: string; readonly reference?: undefined }
  );

interface UserNames {
  readonly firstName: string;
  readonly lastName: string;
  /** Sent as they are, as child elements: `redemption-code`, `promote-option`, `survey-option` … */
  readonly others?: Readonly<Record<string, string>>;
}

/** A user as the service describes it. What it leaves out or leaves empty is null. */
export interface User {
  readonly email: string | null;
  readonly firstName: string | null;
  readonly lastName: string | null;
  readonly guid: string | null;
  readonly accessToken: string | null;
  readonly reference: string | null;
  /** Whatever else it says, by its own names. */
  readonly others: Readonly<Record<string, string>>;
}

/** Characters that are shown of one. */
const MAX_GUID = 64;

const KNOWN = ['email', 'password', 'first-name', 'last-name', 'guid', 'access-token', 'reference'];

function required(name: string, value: string | undefined): XmlTree {
  if (value !== undefined && value.trim() !== '') return { name, content: value };
  throw new CatchwordError('USAGE', `a user needs ${name === 'email' ? 'an' : 'a'} ${name}`, {
    hint: 'A reference user has a reference, a full user an email and a password; both have a first and a last name.',
  });
}

/**
 * The body of `POST /v3/users`.
 * @throws CatchwordError USAGE naming what is missing or too much
 */
export function userXml(user: NewUser): string {
  checkUserFields(user);
  if (user.reference !== undefined && (user.email !== undefined || user.password !== undefined)) {
    throw new CatchwordError('USAGE', 'a user has either a reference, or an email and a password', {
      hint: 'Leave one of them out.',
    });
  }
  const taken = Object.keys(user.others ?? {}).find((name) => KNOWN.includes(name));
  if (taken !== undefined) {
    throw new CatchwordError('USAGE', `${taken} has a field of its own`, {
      hint: 'Give it beside others, by the name of that field.',
    });
  }
  const identity =
    user.reference === undefined
      ? [required('email', user.email), required('password', user.password)]
      : [required('reference', user.reference)];
  return writeXml({
    name: 'user',
    content: [
      ...identity,
      required('first-name', user.firstName),
      required('last-name', user.lastName),
      ...Object.entries(user.others ?? {}).map(([name, content]) => ({ name, content })),
    ],
  });
}

function isAny(fields: ReadonlyMap<string, string>, names: readonly string[]): boolean {
  return names.some((name) => Boolean(fields.get(name)));
}

/**
 * @param isNew whether it was to be created, so that an error beside it names it
 * @throws CatchwordError SERVICE_* where there is an error in its place or beside it, or nothing
 */
function userFrom(answer: XmlAnswer, origin: string, isNew: boolean): User {
  const { records, others } = recordsIn(answer, 'user', ['user']);
  const [root] = records;
  // Bodies without the root have been seen.
  const members = root?.children ?? others;
  const fields = new Map([...(root?.attributes ?? []), ...members.map(({ name, text }) => [name, text] as const)]);
  // An error may repeat which user was asked for, but not what the service alone knows.
  const isUser = isAny(fields, ['guid', 'access-token']);
  const errors = [...others, ...(root?.children.filter(isErrorName) ?? [])];
  const error = errorIn(isUser ? errors : answer.elements, answer, origin);
  if (error !== undefined) {
    const guid = isNew ? fields.get('guid') : undefined;
    throw guid ? mayExist(error, `the user with the guid ${answer.hide(guid, MAX_GUID)}`) : error;
  }
  if (!isUser && !isAny(fields, ['reference', 'email'])) {
    const none = unexpected('user', answer, origin);
    throw isNew ? lookFirst(none) : none;
  }
  const field = (name: string): string | null => fields.get(name) || null;
  return {
    email: field('email'),
    firstName: field('first-name'),
    lastName: field('last-name'),
    guid: field('guid'),
    accessToken: field('access-token'),
    reference: field('reference'),
    others: othersIn(fields, KNOWN),
  };
}

/**
 * `POST /v3/users` (interface, section 4.5). Not asked again after a failure half-way: the user may exist by then.
 * @param suffix `.xml`, or empty
 * @throws CatchwordError USAGE, SOURCE_*, SERVICE_*, XML_INVALID, INTERRUPTED
 */
export async function createUser(caller: Caller, suffix: string, user: NewUser, signal: AbortSignal): Promise<User> {
  const call = {
    ...({ method: 'POST', path: `/v3/users${suffix}`, token: false, repeatable: false, signal } as const),
    body: userXml(user),
    creates: 'guid',
    secrets: user.password === undefined ? [] : [user.password],
  };
  return await caller.xml(call, (answer) => userFrom(answer, caller.origin, true));
}

/**
 * `GET /v3/users/:id` (as public clients ask it).
 * @param id guid, reference or email
 * @throws CatchwordError USAGE where it is empty or would lead elsewhere; SERVICE_UNKNOWN_USER or NOT_FOUND where there
 *   is no such user; SOURCE_*, SERVICE_*, XML_INVALID, INTERRUPTED
 */
export async function readUser(caller: Caller, suffix: string, id: string, signal: AbortSignal): Promise<User> {
  const path = `/v3/users${suffix}/${pathPart('user id', id)}`;
  const call = { method: 'GET', path, token: false, repeatable: true, identified: true, signal } as const;
  return await caller.xml(call, (answer) => userFrom(answer, caller.origin, false));
}

/**
 * `POST /v3/users/reset_access` (interface, section 5 rule 3): the access token of the request is no longer valid afterwards.
 * The shape of the answer is not shown: with a good status, whatever is no error is a success, a text among it.
 * What nobody understands, such as a page for people, is not asked for again: the token may have been reset by then.
 * @throws CatchwordError SOURCE_*, SERVICE_*, XML_INVALID, INTERRUPTED
 */
export async function postReset(caller: Caller, suffix: string, signal: AbortSignal): Promise<void> {
  const path = `/v3/users/reset_access${suffix}`;
  const call = { method: 'POST', path, token: true, repeatable: true, onceAnswered: true, signal } as const;
  await caller.xml(call, (answer) => {
    const error = errorIn(answer.elements, answer, caller.origin);
    if (error !== undefined) throw error;
  });
}
