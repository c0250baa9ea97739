import type { XmlTree } from '../../xml/write.ts';

/** `download` is the newer word for `downloadable`; services write both. */
export const LICENSE_TYPES = ['online', 'downloadable', 'download'] as const;
export type LicenseType = (typeof LICENSE_TYPES)[number];

/** Interface, 2.3; `demo` from its example. */
export const CODE_USES = ['code-api', 'add-drop', 'promotional', 'p+e', 'demo'] as const;
export type CodeUse = (typeof CODE_USES)[number];

/** A license as it is reported (interface, 2.3). `term` and `part_of`: their meaning is not shown. */
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

/** The licenses of the users of one key, by the user's number. */
export interface Licenses {
  /** In the order in which they were first granted. Expired ones too. */
  of(user: number): readonly License[];
  /**
   * Duplicates are allowed without limit, but one copy of a title and type is kept, and of it the expiration alone: the
   * later of both (interface, section 3).
   */
  grant(user: number, license: License): void;
}

/** Whether two words mean the same type. */
export function sameType(one: LicenseType, other: LicenseType): boolean {
  return (one === 'online') === (other === 'online');
}

/** When it ends, in milliseconds since 1970: Infinity for `never`; NaN for what is none of the formats. */
export function expiresAt(expiration: string): number {
  if (expiration === 'never') return Number.POSITIVE_INFINITY;
  // A date without a time lasts to its end.
  if (/^\d{4}-\d\d-\d\d$/.test(expiration)) return Date.parse(`${expiration}T23:59:59.999Z`);
  const isTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/.test(expiration);
  const isRfc = /^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$/.test(expiration);
  return isTime || isRfc ? Date.parse(expiration) : Number.NaN;
}

export function createLicenses(): Licenses {
  const byUser = new Map<number, License[]>();
  return {
    of: (user) => byUser.get(user) ?? [],
    grant: (user, license) => {
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

/** The element of interface 2.3, all attributes in its order. */
export function licenseElement(license: License): XmlTree {
  const { imprint, publisher, name, sku, isbn, term, kind, type, expiration } = license;
  return {
    name: 'license',
    attributes: {
      ...{ imprint, publisher, name, sku, isbn, part_of: license.partOf, term },
      ...{ 'code-use': license.codeUse, kind, type, expiration },
    },
  };
}
