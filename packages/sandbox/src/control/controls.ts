import { CatchwordError, messageOf } from '@catchword/base/errors';
import { recordOf } from '@catchword/base/record-of';
import * as z from 'zod';
import { CODE_USES, expiresAt, LICENSE_TYPES } from '../accounts/held-licenses.ts';
import { mutation } from '../catalog/changing-catalog.ts';
import { jsonReply, Rejection, type Reply } from '../http/reply.ts';
import { validate } from '../http/validate.ts';
import type { Stores } from '../sandbox-stores.ts';

/** Text without control characters, halves of surrogates and others that XML cannot hold. */
export const xmlText = z.string().regex(/^[^\p{Cc}\p{Cs}\ufffe\uffff]*$/u, 'holds a character that XML cannot hold');

const newKey = z.strictObject({
  api_key: z.string().regex(/^[\x21-\x7e]{1,255}$/, 'must be 1 to 255 printable characters without spaces'),
});
const name = xmlText.min(1);
const userId = z.strictObject({ reference: name.optional(), guid: name.optional() });
const expiration = z
  .string()
  .refine((value) => !Number.isNaN(expiresAt(value)), 'must be never, an RFC 1123 date or an ISO 8601 date');
const grant = z.strictObject({
  ...userId.shape,
  sku: name,
  type: z.enum(LICENSE_TYPES).default('downloadable'),
  expiration: expiration.optional(),
  code_use: z.enum(CODE_USES).optional(),
  ...recordOf(xmlText.optional(), 'name', 'publisher', 'imprint', 'isbn', 'part_of', 'term', 'kind'),
});
const failure = z.strictObject({ ...userId.shape, code: z.int().min(100).max(999).nullable() });
const guid = z.string().regex(/^[0-9A-Z]{8,64}$/, 'must be 8 to 64 upper-case letters and digits');
const token = z.string().regex(/^[0-9a-z]{8,64}$/, 'must be 8 to 64 lower-case letters and digits');
const newUser = z.strictObject({
  reference: name.optional(),
  email: z.email('must be an email address').optional(),
  first_name: xmlText.optional(),
  last_name: xmlText.optional(),
  guid: guid.optional(),
  access_token: token.optional(),
});

/** A request that changes the sandbox from outside the interface, with a body as parsed from JSON. @throws Rejection */
export type Control = (body: unknown) => Reply;

/** @param run returns what the control replies with, as JSON */
export function controlOf<T>(schema: z.ZodType<T>, run: (body: T) => object): Control {
  return (body) => jsonReply(run(validate(schema, body)));
}

/** Creates the controls that the journal records, by path. */
export function createControls({ catalog, directory }: Stores): ReadonlyMap<string, Control> {
  /** Looks among the users of the main key first, then of the other keys. */
  function find({ reference, guid = '' }: z.infer<typeof userId>) {
    for (const members of directory.all) {
      const { accounts } = members;
      const user = reference === undefined ? accounts.byGuid(guid) : accounts.byReference(reference);
      if (user !== null) return { members, user };
    }
    throw new Rejection(404, 'User not found');
  }

  const controls: Record<string, Control> = {
    '/_sandbox/mutate': controlOf(mutation, (asked) => {
      try {
        return catalog.mutate(asked);
      } catch (error) {
        throw error instanceof CatchwordError ? new Rejection(422, messageOf(error)) : error;
      }
    }),
    '/_sandbox/key': controlOf(newKey, ({ api_key }) => {
      if (!directory.renewMainKey(api_key)) throw new Rejection(422, 'api_key: is already in use');
      return { api_key };
    }),
    '/_sandbox/grant': controlOf(grant, ({ code_use, reference, guid, ...given }) => {
      const { members, user } = find({ reference, guid });
      directory.grant(members, user, { ...given, 'code-use': code_use });
      return { licenses: members.licenses.of(user.number).length };
    }),
    '/_sandbox/expire': controlOf(userId, (id) => {
      const { members, user } = find(id);
      members.accounts.reset(user);
      return { guid: user.guid };
    }),
    '/_sandbox/fail': controlOf(failure, ({ code, ...id }) => {
      const { members, user } = find(id);
      if (code === null) members.failures.delete(user.number);
      else members.failures.set(user.number, code);
      return { guid: user.guid, code };
    }),
    '/_sandbox/user': controlOf(newUser, ({ first_name, last_name, access_token, ...same }) => {
      const { accounts } = directory.main;
      const profile = { ...same, firstName: first_name, lastName: last_name, accessToken: access_token };
      const taken = accounts.taken(profile);
      const sentAs = taken === 'accessToken' ? 'access_token' : taken;
      if (sentAs !== null) throw new Rejection(422, `${sentAs}: is already in use`);
      return accounts.create(profile);
    }),
  };
  return new Map(Object.entries(controls));
}
