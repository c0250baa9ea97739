import { type Fields, fieldsOf, isWithdrawn, listOf, namesOf, textOf } from './product.ts';

/** Fields that shops read, beyond those of `columnsOf`. Null if absent, null or `"null"`; numbers become text. */
export interface ProductDetails {
  /** True unless the source says false. */
  readonly distributable: boolean;
  readonly subtitle: string | null;
  /** Names in the order of the source, joined by `; `. */
  readonly contributors: string | null;
  readonly language: string | null;
  readonly edition: string | null;
  readonly coverUrl: string | null;
  /** As the source writes it: usually an ISO date or time. */
  readonly onSaleDate: string | null;
  readonly offSaleDate: string | null;
}

/** One price of one variant. `sku` and `duration` are the variant's, the rest is the price's. */
export interface ProductPrice {
  readonly sku: string | null;
  readonly type: string | null;
  readonly duration: string | null;
  readonly currency: string | null;
  /** Null if it is neither a number nor numeric text. */
  readonly value: number | null;
}

/** @param fields the parsed item */
export function detailsOf(fields: Fields): ProductDetails {
  const names = namesOf(fields.contributors);
  return {
    distributable: !isWithdrawn(fields),
    subtitle: textOf(fields.subtitle),
    contributors: names.length === 0 ? null : names.join('; '),
    language: textOf(fields.language),
    edition: textOf(fields.edition),
    coverUrl: textOf(fieldsOf(fields.resource_links).cover_image),
    onSaleDate: textOf(fields.on_sale_date),
    offSaleDate: textOf(fields.off_sale_date),
  };
}

const DECIMAL = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

/** Some services send prices as text. */
function numberOf(value: unknown): number | null {
  const isNumeric = typeof value === 'number' || (typeof value === 'string' && DECIMAL.test(value.trim()));
  const number = isNumeric ? Number(value) : Number.NaN;
  return Number.isFinite(number) ? number : null;
}

/**
 * One row for each of `variants[].prices[]`, in the order of the source.
 * @param fields the parsed item
 */
export function pricesOf(fields: Fields): ProductPrice[] {
  return listOf(fields.variants).flatMap((item) => {
    const variant = fieldsOf(item);
    return listOf(variant.prices).map((entry) => {
      const price = fieldsOf(entry);
      return {
        sku: textOf(variant.sku),
        type: textOf(price.type),
        duration: textOf(variant.duration),
        currency: textOf(price.currency),
        value: numberOf(price.value),
      };
    });
  });
}
