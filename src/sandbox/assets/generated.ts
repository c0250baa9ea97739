import { PUBLISHERS } from '../words.ts';
import type { AssetFields } from './asset.ts';

/** The parts of a generated product of 2 KB that an asset has too. */
interface GeneratedItem {
  readonly title: string;
  readonly subtitle: string;
  readonly kind: string;
  readonly language: string;
  readonly publisher: string;
  readonly edition: number | string;
  readonly format: string;
  readonly contributors: readonly { readonly name: string }[];
  readonly on_sale_date: string;
  readonly identifiers: {
    readonly print_isbn_canonical: string | number | null;
    readonly eisbn_canonical: string | null;
  };
  readonly sales_rights: readonly string[];
  readonly metadata: {
    readonly description: string;
    readonly publication_date: string;
    readonly copyright_date: string;
  };
  readonly variants: readonly {
    readonly duration: string;
    readonly prices: readonly { readonly type: string; readonly value: number | string; readonly currency: string }[];
  }[];
}

/** @param text a product with all its members, as the catalog renders it */
export function fieldsOfGenerated(text: string): AssetFields {
  const item = JSON.parse(text) as GeneratedItem;
  const { print_isbn_canonical: print, eisbn_canonical: electronic } = item.identifiers;
  const edition = Number(item.edition);
  const prices = item.variants.flatMap(({ duration, prices }) =>
    prices.map(({ type, value, currency }) => ({
      ...{ currency, type, amount: Number(value) },
      ...(duration !== 'perpetual' && { duration: Number(duration) }),
    })),
  );
  return {
    ...{ title: item.title, subtitle: item.subtitle, kind: item.kind, language: item.language, prices },
    author_name: item.contributors[0]?.name ?? '',
    description: item.metadata.description,
    ...(Number.isInteger(edition) && { edition }),
    imprint_id: 1 + (PUBLISHERS as readonly string[]).indexOf(item.publisher),
    on_sale_date: item.on_sale_date,
    publication_date: item.metadata.publication_date,
    copyright_date: item.metadata.copyright_date,
    ...(print !== null && { print_isbn: String(print) }),
    ...(electronic !== null && { e_isbn: electronic }),
    sales_rights: { exclusive_rights: [], non_exclusive_rights: [...item.sales_rights], not_for_sale: null },
  };
}
