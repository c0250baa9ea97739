import { recordOf } from '@catchword/base/record-of';
import * as z from 'zod';
import type { JsonObject } from '../http/answer.ts';
import { parseInput, UNCHECKED_HINT, uncheckedFields } from '../input/parse-input.ts';
import { name, text, whole } from '../input/request-fields.ts';
import { decimalOf, listOf, objectOf, textOf, textsOf, wholeOf } from '../input/response-fields.ts';

/*
 * A package: existing books under one SKU (interface, 4.5). Its shape is not shown there; these fields have been seen at
 * live services. Other fields are sent and returned unchanged.
 */

const license = z.looseObject(
  {
    details: text.optional(),
    duration: z.union([z.string(), z.number()], 'must be a number of days or a word').optional(),
    type: z.enum(['numdays', 'absdate', 'perpetual'], 'must be numdays, absdate or perpetual').optional(),
    num_days: whole('must be a whole number of days, 1 or more', (days) => days >= 1).optional(),
  },
  'must be an object',
);

const REQUEST = z.looseObject(
  {
    sku: name.optional(),
    ...recordOf(text.optional(), 'name', 'description', 'publisher'),
    list_price: z.union([z.string(), z.number()], 'must be a price').optional(),
    library_id: z.union([z.string(), z.number()], 'must be a number or a text').optional(),
    products: z.array(z.unknown(), 'must be an array').optional(),
    tags: z.array(text, 'must be an array of texts').optional(),
    ...recordOf(license.optional(), 'download_license', 'online_license'),
  },
  'must be an object',
);

/** The fields of a package as a caller passes them. @rule 1-3 */
export type PackageFields = z.input<typeof REQUEST>;

/** @returns the body to send. @throws CatchwordError USAGE naming every invalid field by its path */
export function checkPackage(fields: unknown, unchecked: boolean): JsonObject {
  if (unchecked) return uncheckedFields('the package', REQUEST.shape, fields);
  return parseInput('the package', REQUEST, fields, UNCHECKED_HINT);
}

const licenseOf = objectOf({ details: textOf, duration: textOf, type: textOf, num_days: wholeOf });

const PACKAGE = z.object({
  ...recordOf(textOf, 'sku', 'name', 'description', 'publisher', 'library_id', 'created_on', 'updated_on'),
  list_price: decimalOf,
  /** Identifiers of its books: texts, or objects with a `vbid` or `sku`. Others are only in `raw`. */
  products: z
    .array(z.unknown())
    .transform((products) => products.flatMap((product) => productKey(product) ?? []))
    .optional()
    .catch(undefined),
  tags: textsOf,
  ...recordOf(licenseOf, 'download_license', 'online_license'),
});

export const PACKAGE_FIELDS: readonly string[] = Object.keys(PACKAGE.shape);

function productKey(product: unknown): string | undefined {
  const [object] = listOf({ sku: textOf, vbid: textOf }).parse([product]) ?? [];
  return textOf.parse(product) ?? object?.vbid ?? object?.sku;
}

/** A package as the service returns it. A field that is missing, or of another form, is undefined. */
export type Package = z.output<typeof PACKAGE> & { readonly raw: JsonObject };

/** @param raw empty if the answer has no body */
export function packageOf(raw: JsonObject = {}): Package {
  return { ...PACKAGE.parse(raw), raw };
}
