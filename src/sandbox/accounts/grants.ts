import { isWritable } from '../../xml/write.ts';
import type { Numbering } from '../catalog/product-numbers.ts';
import type { TitleOf } from '../operations/titles.ts';
import type { License } from './licenses.ts';

/** What a license is made from; what is left out comes from the title, or is empty. */
export type Grant = Pick<License, 'sku' | 'type'> & { readonly [Field in keyof License]?: License[Field] | undefined };

/** Without what XML cannot hold, in which licenses are answered; the title of an asset, sent as JSON, may hold it. */
function writable(text: string): string {
  return isWritable(text)
    ? text
    : Array.from(text)
        .filter((character) => isWritable(character))
        .join('');
}

/** A license with all its attributes. Titles that the catalog does not have are licensed under their SKU as name. */
export function licenseFor({ sku, type, ...given }: Grant, titleOf: TitleOf): License {
  const title = titleOf(sku);
  const publisher = writable(given.publisher ?? title?.publisher ?? '');
  return {
    sku,
    type,
    expiration: given.expiration ?? 'never',
    codeUse: given.codeUse ?? 'code-api',
    name: writable(given.name ?? title?.name ?? sku),
    publisher,
    imprint: given.imprint ?? publisher,
    isbn: given.isbn ?? title?.isbn ?? '',
    partOf: given.partOf ?? '',
    term: given.term ?? '',
    kind: writable(given.kind ?? title?.kind ?? 'book'),
  };
}

/**
 * What the sandbox's own reader holds: a title with both types, an expired one, dates in each format, each `code-use`,
 * and a SKU that is a word. The dates are far from any clock, so that the answers are the same on every day.
 */
export function readerGrants(numbering: Numbering): Grant[] {
  const vbid = (index: number) => numbering.vbid(index);
  return [
    { sku: vbid(0), type: 'online' },
    { sku: vbid(0), type: 'downloadable' },
    { sku: vbid(1), type: 'downloadable', expiration: 'Thu, 10 Mar 2016 22:14:54 GMT' },
    { sku: vbid(2), type: 'online', expiration: '2099-12-31', codeUse: 'add-drop', term: '180' },
    { sku: vbid(3), type: 'downloadable', expiration: 'Thu, 31 Dec 2099 23:59:59 GMT', codeUse: 'promotional' },
    { sku: vbid(4), type: 'online', codeUse: 'p+e' },
    { sku: 'BOOKSHELF-TUTORIAL', type: 'download', codeUse: 'demo', name: 'Bookshelf Tutorial' },
  ];
}
