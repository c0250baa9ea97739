import { PUBLISHERS } from '../catalog/words.ts';
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
  readonly created: string;
  readonly contributors: readonly { readonly name: string }[];
  readonly on_sale_date: string;
  readonly print_restrictions: number;
  readonly copy_restrictions: number;
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

/** A product of the catalog's own as an asset. */
export interface GeneratedAsset {
  /** Without the ISBNs, which follow from its identifiers. */
  readonly fields: AssetFields;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  /** Of its file, as `book_format` has it. */
  readonly format: string;
}

/** @param text a product with all its members, as the catalog renders it */
export function generatedAsset(text: string): GeneratedAsset {
  const item = JSON.parse(text) as GeneratedItem;
  return { fields: fieldsOf(item), createdAt: Date.parse(item.created), format: item.format.toLowerCase() };
}

function fieldsOf(item: GeneratedItem): AssetFields {
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
    ...{ print_drm_limit: item.print_restrictions, copy_drm_limit: item.copy_restrictions },
    sales_rights: { exclusive_rights: [], non_exclusive_rights: [...item.sales_rights], not_for_sale: null },
  };
}
