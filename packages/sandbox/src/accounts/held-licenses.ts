import { recordOf } from '@catchword/base/record-of';
import { isWritable } from '@catchword/xml/write';
import * as z from 'zod';
import type { Assets } from '../assets/asset-store.ts';
import type { Numbering } from '../catalog/product-numbers.ts';
import { attribute, CODES, codeRejection } from '../http/reply.ts';

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
    ...recordOf(attribute, 'imprint', 'publisher', 'name', 'sku', 'isbn', 'part_of', 'term', 'kind'),
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

/** What a license is made from. Omitted fields come from the title, or are empty. */
export type Grant = Pick<License, 'sku' | 'type'> & { readonly [Field in keyof License]?: License[Field] | undefined };

/** Removes characters that XML cannot hold. The title of an asset comes from JSON and may have them. */
function writable(text: string): string {
  return Array.from(text).filter(isWritable).join('');
}

/** A title that the catalog does not have gets its SKU as name. The attributes are written in this order. */
export function licenseFor({ sku, type, ...given }: Grant, titleOf: Assets['titleOf']): License {
  const title = titleOf(sku);
  const publisher = writable(given.publisher ?? title?.publisher ?? '');
  return {
    imprint: given.imprint ?? publisher,
    publisher,
    name: writable(given.name ?? title?.name ?? sku),
    sku,
    isbn: given.isbn ?? title?.isbn ?? '',
    part_of: given.part_of ?? '',
    term: given.term ?? '',
    'code-use': given['code-use'] ?? 'code-api',
    kind: writable(given.kind ?? title?.kind ?? 'book'),
    type,
    expiration: given.expiration ?? 'never',
  };
}

/** Licenses of the sandbox's own reader, of each kind. Their dates are far away: replies do not depend on the day. */
export function readerGrants({ vbid }: Numbering): Grant[] {
  return [
    { sku: vbid(0), type: 'online' },
    { sku: vbid(0), type: 'downloadable' },
    { sku: vbid(1), type: 'downloadable', expiration: 'Thu, 10 Mar 2016 22:14:54 GMT' },
    { sku: vbid(2), type: 'online', expiration: '2099-12-31', 'code-use': 'add-drop', term: '180' },
    { sku: vbid(3), type: 'downloadable', expiration: 'Thu, 31 Dec 2099 23:59:59 GMT', 'code-use': 'promotional' },
    { sku: vbid(4), type: 'online', 'code-use': 'p+e' },
    { sku: 'BOOKSHELF-TUTORIAL', type: 'download', 'code-use': 'demo', name: 'Bookshelf Tutorial' },
  ];
}

const REDEEMABLE = ['SANDBOX-BOOK-1', 'SANDBOX-BOOK-2', 'SANDBOX-BOOK-3'];

/** Each of `REDEEMABLE` grants a book, once. `SANDBOX-USED` is already redeemed, `SANDBOX-FAILED` fails. */
export function createRedemption(numbering: Numbering) {
  const redeemed = new Set(['SANDBOX-USED']);
  /** @throws Rejection if the code cannot be redeemed */
  return (code: string): Grant => {
    if (redeemed.has(code)) throw codeRejection(200, CODES.alreadyRedeemed);
    if (code === 'SANDBOX-FAILED') throw codeRejection(200, CODES.redemptionFailed);
    if (!REDEEMABLE.includes(code)) throw codeRejection(200, CODES.redemptionInvalid);
    redeemed.add(code);
    return { sku: numbering.vbid(10 + REDEEMABLE.indexOf(code)), type: 'downloadable', 'code-use': 'code-api' };
  };
}

/** The licenses of one key's users, by the user's number. */
export function createLicenses() {
  const byUser = new Map<number, License[]>();
  return {
    /** In the order in which they were first granted, including expired ones. */
    of: (user: number): readonly License[] => byUser.get(user) ?? [],
    /** Of duplicates, one copy of a title and type is kept, with the later expiration (interface, section 3). */
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
