import { z } from 'zod';
import type { Profile, User } from '../accounts/accounts.ts';
import type { Directory, Members } from '../accounts/api-keys.ts';
import { CODE_USES, expiresAt, LICENSE_TYPES } from '../accounts/licenses.ts';
import { type Answer, errorAnswer } from '../http/response.ts';
import { KEY_WITHOUT_CATALOG } from '../options.ts';
import { type Control, taking, text } from './control.ts';

const name = text.min(1);
const whose = { reference: name.optional(), guid: name.optional() };

const grant = z.strictObject({
  ...whose,
  sku: name,
  type: z.enum(LICENSE_TYPES).default('downloadable'),
  expiration: z
    .string()
    .refine((value) => !Number.isNaN(expiresAt(value)), 'never, an RFC 1123 date or an ISO 8601 date is needed')
    .optional(),
  code_use: z.enum(CODE_USES).optional(),
  name: text.optional(),
  publisher: text.optional(),
  imprint: text.optional(),
  isbn: text.optional(),
  part_of: text.optional(),
  term: text.optional(),
  kind: text.optional(),
});
const expiry = z.strictObject(whose);
const failing = z.strictObject({ ...whose, code: z.int().min(100).max(999).nullable() });
const newUser = z.strictObject({
  reference: name.optional(),
  email: z.email().optional(),
  first_name: text.optional(),
  last_name: text.optional(),
  guid: z
    .string()
    .regex(/^[0-9A-Z]{8,64}$/, '8 to 64 upper-case letters and digits are needed')
    .optional(),
  access_token: z
    .string()
    .regex(/^[0-9a-z]{8,64}$/, '8 to 64 lower-case letters and digits are needed')
    .optional(),
});

/** Members that the control calls by another name. */
const SENT_AS: Partial<Record<keyof Profile, string>> = { accessToken: 'access_token' };

interface Found {
  readonly members: Members;
  readonly user: User;
}

/**
 * What an integrator's tests need to bring about, by path:
 * - `/_sandbox/grant`: gives a user a license;
 * - `/_sandbox/expire`: makes a user's token stale, as if it had been reset elsewhere: verified again, the user has another;
 * - `/_sandbox/fail`: answers a user's licenses with an error inside a 200 until `code` is null;
 * - `/_sandbox/user`: creates a user whose guid and token are chosen, full where it has no reference.
 *
 * The user is one of the main key's, or of the other keys' where that has none such.
 */
export function accountControls(
  directory: Directory,
  keys: { readonly apiKey: string; readonly otherApiKey: string },
): ReadonlyMap<string, Control> {
  const all = [keys.apiKey, keys.otherApiKey, KEY_WITHOUT_CATALOG].map((key) => directory.of(key));

  function find({ reference, guid }: { reference?: string | undefined; guid?: string | undefined }): Found | null {
    for (const members of all) {
      const { accounts } = members;
      const user = reference === undefined ? accounts.byGuid(guid ?? '') : accounts.byReference(reference);
      if (user !== null) return { members, user };
    }
    return null;
  }

  function forUser<T extends z.infer<typeof expiry>>(schema: z.ZodType<T>, act: (found: Found, asked: T) => Answer) {
    return taking(schema, (asked) => {
      const found = find(asked);
      return found === null ? errorAnswer(404, 'There is no such user') : act(found, asked);
    });
  }

  return new Map<string, Control>([
    [
      '/_sandbox/grant',
      forUser(grant, ({ members, user }, { code_use: codeUse, part_of: partOf, ...rest }) => {
        directory.grant(members, user, { ...rest, codeUse, partOf });
        return done({ licenses: members.licenses.of(user.number).length });
      }),
    ],
    [
      '/_sandbox/expire',
      forUser(expiry, ({ members, user }) => {
        members.accounts.reset(user);
        return done({ guid: user.guid });
      }),
    ],
    [
      '/_sandbox/fail',
      forUser(failing, ({ members, user }, { code }) => {
        if (code === null) members.failures.delete(user.number);
        else members.failures.set(user.number, code);
        return done({ guid: user.guid, code });
      }),
    ],
    [
      '/_sandbox/user',
      taking(newUser, ({ first_name: firstName, last_name: lastName, access_token: accessToken, ...rest }) => {
        const { accounts } = directory.of(keys.apiKey);
        const profile = { ...rest, firstName, lastName, accessToken };
        const taken = accounts.taken(profile);
        if (taken !== null) return errorAnswer(422, `${SENT_AS[taken] ?? taken}: is already in use`);
        return done(accounts.create(profile));
      }),
    ],
  ]);
}

function done(body: object): Answer {
  return { status: 200, body: JSON.stringify(body) };
}
