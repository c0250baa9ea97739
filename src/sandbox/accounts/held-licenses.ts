import * as z from 'zod';
import { attribute } from '../http/reply.ts';
import { shapeOf } from '../http/validate.ts';

/**
 * `download` is the newer word for `downloadable`; services use both.
 * @rule 2.3-1..4, 3-2..4
 */
export const LICENSE_TYPES = ['online', 'downloadable', 'download'] as const;

/** Interface, 2.3; `demo` is in its example. */
export const CODE_USES = ['code-api', 'add-drop', 'promotional', 'p+e', 'demo'] as const;

/** The attributes of a license (interface, 2.3). The meaning of `term` and `part_of` is not shown. */
export const licenseSchema = z
  .object({
    ...shapeOf(['imprint', 'publisher', 'name', 'sku', 'isbn', 'part_of', 'term', 'kind'] as const, attribute),
    'code-use': z.enum(CODE_USES).meta({ xml: { attribute: true } }),
    type: z.enum(LICENSE_TYPES).meta({ xml: { attribute: true } }),
    expiration: attribute.describe('never, an RFC 1123 date or an ISO 8601 date'),
  })
  .meta({ xml: { name: 'license' } });
export type License = Readonly<z.infer<typeof licenseSchema>>;

export function sameType(one: License['type'], other: License['type']): boolean {
  return (one === 'online') === (other === 'online');
}

/** Returns the end in milliseconds since 1970; Infinity for `never`, NaN for an unknown format. */
export function expiresAt(expiration: string): number {
  if (expiration === 'never') return Number.POSITIVE_INFINITY;
  // A date without a time lasts until its end.
  if (/^\d{4}-\d\d-\d\d$/.test(expiration)) return Date.parse(`${expiration}T23:59:59.999Z`);
  const isTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/.test(expiration);
  const isRfc = /^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$/.test(expiration);
  return isTime || isRfc ? Date.parse(expiration) : Number.NaN;
}

/** The licenses of one key's users, by the user's number. */
export function createLicenses() {
  const byUser = new Map<number, License[]>();
  return {
    /** In the order in which they were first granted, including expired ones. */
    of: (user: number): readonly License[] => byUser.get(user) ?? [],
    /**
     * Duplicates are allowed without limit. Only one copy of a title and type is kept, with the later of both expirations
     * (interface, section 3).
     */
    grant: (user: number, license: License): void => {
      const kept = byUser.get(user) ?? [];
      byUser.set(user, kept);
      const at = kept.findIndex(({ sku, type }) => sku === license.sku && sameType(type, license.type));
      const former = kept[at];
      if (former === undefined) kept.push(license);
      else if (expiresAt(license.expiration) > expiresAt(former.expiration)) {
        kept[at] = { ...former, expiration: license.expiration };
      }
    },
  };
}
