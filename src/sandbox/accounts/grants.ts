import { isWritable } from '../../xml/write.ts';
import type { Assets } from '../assets/asset-store.ts';
import type { Numbering } from '../catalog/product-numbers.ts';
import { CODES, codeRejection } from '../http/reply.ts';
import type { License } from './held-licenses.ts';

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

/**
 * Licenses of the sandbox's own reader: a title with both types, an expired one, dates in each format, each `code-use`,
 * and a SKU that is a word. The dates are far away, so that replies do not depend on the day.
 */
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
  return {
    /** @throws Rejection if the code cannot be redeemed */
    check: (code: string): void => {
      if (redeemed.has(code)) throw codeRejection(200, CODES.alreadyRedeemed);
      if (code === 'SANDBOX-FAILED') throw codeRejection(200, CODES.redemptionFailed);
      if (!REDEEMABLE.includes(code)) throw codeRejection(200, CODES.redemptionInvalid);
    },
    /** Redeems a code that was checked. */
    redeem: (code: string): Grant => {
      redeemed.add(code);
      return { sku: numbering.vbid(10 + REDEEMABLE.indexOf(code)), type: 'downloadable', 'code-use': 'code-api' };
    },
  };
}
