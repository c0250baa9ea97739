import { z } from 'zod';
import type { Profile, User } from '../accounts/accounts.ts';
import type { Directory, Members } from '../accounts/directory.ts';
import { CODE_USES, expiresAt, LICENSE_TYPES } from '../accounts/licenses.ts';
import { jsonReply, Rejection } from '../http/reply.ts';
import { validate } from '../http/validate.ts';
import { type Control, xmlText } from './controls.ts';

const name = xmlText.min(1);
const userId = { reference: name.optional(), guid: name.optional() };

const grant = z.strictObject({
  ...userId,
  sku: name,
  type: z.enum(LICENSE_TYPES).default('downloadable'),
  expiration: z
    .string()
    .refine((value) => !Number.isNaN(expiresAt(value)), 'must be never, an RFC 1123 date or an ISO 8601 date')
    .optional(),
  code_use: z.enum(CODE_USES).optional(),
  name: xmlText.optional(),
  publisher: xmlText.optional(),
  imprint: xmlText.optional(),
  isbn: xmlText.optional(),
  part_of: xmlText.optional(),
  term: xmlText.optional(),
  kind: xmlText.optional(),
});
const expiry = z.strictObject(userId);
const failure = z.strictObject({ ...userId, code: z.int().min(100).max(999).nullable() });
const newUser = z.strictObject({
  reference: name.optional(),
  email: z.email('must be an email address').optional(),
  first_name: xmlText.optional(),
  last_name: xmlText.optional(),
  guid: z
    .string()
    .regex(/^[0-9A-Z]{8,64}$/, 'must be 8 to 64 upper-case letters and digits')
    .optional(),
  access_token: z
    .string()
    .regex(/^[0-9a-z]{8,64}$/, 'must be 8 to 64 lower-case letters and digits')
    .optional(),
});

/** Members that the control calls by another name. */
const SENT_AS: Partial<Record<keyof Profile, string>> = { accessToken: 'access_token' };

interface Found {
  readonly members: Members;
  readonly user: User;
}

/**
 * Controls that an integrator's tests need, by path:
 * - `/_sandbox/grant` gives a user a license;
 * - `/_sandbox/expire` makes a user's token stale, as a reset elsewhere would; verify then returns a new one;
 * - `/_sandbox/fail` replies to a user's license requests with an error inside a 200, until `code` is null;
 * - `/_sandbox/user` creates a user with a chosen guid and token; without a reference it is a full user.
 *
 * The user is looked up among those of the main key first, then of the other keys.
 */
export function accountControls(directory: Directory): ReadonlyMap<string, Control> {
  function find({ reference, guid = '' }: z.infer<typeof expiry>): Found {
    for (const members of directory.all) {
      const { accounts } = members;
      const user = reference === undefined ? accounts.byGuid(guid) : accounts.byReference(reference);
      if (user !== null) return { members, user };
    }
    throw new Rejection(404, 'User not found');
  }

  const controls: Record<string, Control> = {
    '/_sandbox/grant': (body) => {
      const { code_use: codeUse, part_of: partOf, reference, guid, ...rest } = validate(grant, body);
      const { members, user } = find({ reference, guid });
      directory.grant(members, user, { ...rest, codeUse, partOf });
      return jsonReply({ licenses: members.licenses.of(user.number).length });
    },
    '/_sandbox/expire': (body) => {
      const { members, user } = find(validate(expiry, body));
      members.accounts.reset(user);
      return jsonReply({ guid: user.guid });
    },
    '/_sandbox/fail': (body) => {
      const { code, ...id } = validate(failure, body);
      const { members, user } = find(id);
      if (code === null) members.failures.delete(user.number);
      else members.failures.set(user.number, code);
      return jsonReply({ guid: user.guid, code });
    },
    '/_sandbox/user': (body) => {
      const {
        first_name: firstName,
        last_name: lastName,
        access_token: accessToken,
        ...rest
      } = validate(newUser, body);
      const { accounts } = directory.main;
      const profile = { ...rest, firstName, lastName, accessToken };
      const taken = accounts.taken(profile);
      if (taken !== null) throw new Rejection(422, `${SENT_AS[taken] ?? taken}: is already in use`);
      return jsonReply(accounts.create(profile));
    },
  };
  return new Map(Object.entries(controls));
}
