import { type Fields, fieldsOf, isWithdrawn, name, text } from './product.ts';

/**
 * What a shop reads of a product beyond the columns of `columnsOf`. Null where the source says nothing, or says `"null"`;
 * a number is given as its text.
 */
export interface ProductDetails {
  /** True unless the source says false. */
  readonly distributable: boolean;
  readonly subtitle: string | null;
  /** Names in the order of the source, joined by `; `. */
  readonly contributors: string | null;
  readonly language: string | null;
  readonly edition: string | null;
  readonly coverUrl: string | null;
  /** As the source writes them: an ISO date or time, seldom something else. */
  readonly onSaleDate: string | null;
  readonly offSaleDate: string | null;
}

/** One price of one variant. `sku` and `duration` are the variant's, the rest is the price's. */
export interface ProductPrice {
  readonly sku: string | null;
  readonly type: string | null;
  readonly duration: string | null;
  readonly currency: string | null;
  /** Null where it is not a number, nor the text of one. */
  readonly value: number | null;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** @param fields the parsed item */
export function detailsOf(fields: Fields): ProductDetails {
  const names = listOf(fields.contributors)
    .map(name)
    .filter((item) => item !== null);
  return {
    distributable: !isWithdrawn(fields),
    subtitle: text(fields.subtitle),
    contributors: names.length === 0 ? null : names.join('; '),
    language: text(fields.language),
    edition: text(fields.edition),
    coverUrl: text(fieldsOf(fields.resource_links).cover_image),
    onSaleDate: text(fields.on_sale_date),
    offSaleDate: text(fields.off_sale_date),
  };
}

const DECIMAL = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

/** Services in the wild send prices as text, too. */
function numberOf(value: unknown): number | null {
  const isNumeric = typeof value === 'number' || (typeof value === 'string' && DECIMAL.test(value.trim()));
  const number = isNumeric ? Number(value) : Number.NaN;
  return Number.isFinite(number) ? number : null;
}

/**
 * A row for each `variants[].prices[]`, in the order of the source.
 * @param fields the parsed item
 */
export function pricesOf(fields: Fields): ProductPrice[] {
  return listOf(fields.variants).flatMap((item) => {
    const variant = fieldsOf(item);
    return listOf(variant.prices).map((entry) => {
      const price = fieldsOf(entry);
      return {
        sku: text(variant.sku),
        type: text(price.type),
        duration: text(variant.duration),
        currency: text(price.currency),
        value: numberOf(price.value),
      };
    });
  });
}
