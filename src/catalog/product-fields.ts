import { type Fields, fieldsOf, isWithdrawn, listOf, namesOf, textOf } from './product.ts';

/** The fields that shops read, beyond those of `columnsOf`. Null if absent, null or `"null"`; numbers become text. */
export function detailsOf(fields: Fields) {
  const names = namesOf(fields.contributors);
  return {
    distributable: !isWithdrawn(fields),
    subtitle: textOf(fields.subtitle),
    /** In the order of the source. */
    contributors: names.length === 0 ? null : names.join('; '),
    language: textOf(fields.language),
    edition: textOf(fields.edition),
    coverUrl: textOf(fieldsOf(fields.resource_links).cover_image),
    /** As the source writes it: usually an ISO date or time. */
    onSaleDate: textOf(fields.on_sale_date),
    offSaleDate: textOf(fields.off_sale_date),
  };
}

const DECIMAL = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

/** Some services send prices as text. Null for anything but a number. */
function numberOf(value: unknown): number | null {
  const isNumeric = typeof value === 'number' || (typeof value === 'string' && DECIMAL.test(value.trim()));
  const number = isNumeric ? Number(value) : Number.NaN;
  return Number.isFinite(number) ? number : null;
}

/** One row for each of `variants[].prices[]`, in the order of the source. `sku` and `duration` are the variant's. */
export function pricesOf(fields: Fields) {
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
