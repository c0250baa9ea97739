/**
 * `download` is the newer word for `downloadable`; services use both.
 * @rule 2.3-1..4, 3-2..4
 */
export const LICENSE_TYPES = ['online', 'downloadable', 'download'] as const;
export type LicenseType = (typeof LICENSE_TYPES)[number];

/** Interface, 2.3; `demo` is in its example. */
export const CODE_USES = ['code-api', 'add-drop', 'promotional', 'p+e', 'demo'] as const;
export type CodeUse = (typeof CODE_USES)[number];

/** A license (interface, 2.3). The meaning of `term` and `partOf` is not shown. */
export interface License {
  readonly sku: string;
  readonly type: LicenseType;
  /** `never`, an RFC 1123 date, or an ISO 8601 date or time. */
  readonly expiration: string;
  readonly codeUse: CodeUse;
  readonly name: string;
  readonly publisher: string;
  readonly imprint: string;
  readonly isbn: string;
  readonly partOf: string;
  readonly term: string;
  readonly kind: string;
}

/** Whether two words mean the same type. */
export function sameType(one: LicenseType, other: LicenseType): boolean {
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

export type Licenses = ReturnType<typeof createLicenses>;
