import { z } from 'zod';
import { inputError, PARSING } from '../input/input-error.ts';
import { name, text, whole } from '../input/request-fields.ts';
import { decimalOf, listOf, objectOf, textOf, textsOf, wholeOf } from '../input/response-fields.ts';

/*
 * A package: existing books under one SKU (interface, 4.5). Its shape is not shown there. These are the fields that have
 * been seen at live services; others pass, both ways.
 */

const license = z.looseObject(
  {
    details: text.optional(),
    duration: z.union([z.string(), z.number()], 'a number of days, or a word, is needed').optional(),
    type: z.enum(['numdays', 'absdate', 'perpetual'], 'numdays, absdate or perpetual is needed').optional(),
    num_days: whole('a whole number of days, 1 or more, is needed', (days) => days >= 1).optional(),
  },
  'an object is needed',
);

const REQUEST = z.looseObject(
  {
    sku: name.optional(),
    name: text.optional(),
    description: text.optional(),
    publisher: text.optional(),
    list_price: z.union([z.string(), z.number()], 'a price is needed').optional(),
    library_id: z.union([z.string(), z.number()], 'a number or a text is needed').optional(),
    products: z.array(z.unknown(), 'an array is needed').optional(),
    tags: z.array(text, 'an array of texts is needed').optional(),
    download_license: license.optional(),
    online_license: license.optional(),
  },
  'an object is needed',
);

/** The fields of a package as a caller gives them. */
export type PackageFields = z.input<typeof REQUEST>;

/**
 * @returns the body to send
 * @throws CatchwordError USAGE naming every wrong field by its path
 */
export function checkPackage(fields: unknown): z.output<typeof REQUEST> {
  const parsed = REQUEST.safeParse(fields, PARSING);
  if (parsed.success) return parsed.data;
  throw inputError('the package', parsed.error.issues);
}

const licenseOf = objectOf({ details: textOf, duration: textOf, type: textOf, num_days: wholeOf });

const PACKAGE = z.object({
  sku: textOf,
  name: textOf,
  description: textOf,
  publisher: textOf,
  list_price: decimalOf,
  library_id: textOf,
  /** Identifiers of its books, where they come as texts or as objects with a `sku` or `vbid`; see `raw` otherwise. */
  products: z
    .array(z.unknown())
    .transform((products) => products.flatMap((product) => productKey(product) ?? []))
    .optional()
    .catch(undefined),
  tags: textsOf,
  download_license: licenseOf,
  online_license: licenseOf,
  created_on: textOf,
  updated_on: textOf,
});

export const PACKAGE_FIELDS: readonly string[] = Object.keys(PACKAGE.shape);

function productKey(product: unknown): string | undefined {
  const [own] = textsOf.parse(product) ?? [];
  const [object] = listOf({ sku: textOf, vbid: textOf }).parse([product]) ?? [];
  return own ?? object?.vbid ?? object?.sku;
}

/** A package as the service shows it. Fields that are missing, or of another form, are undefined. */
export type Package = z.output<typeof PACKAGE> & {
  /** The answer as it was received; a text in place of an object is its `text`. */
  readonly raw: Readonly<Record<string, unknown>>;
};

/** A package of a parsed answer; undefined where the answer is no object. */
export function packageOf(value: unknown): Package | undefined {
  const parsed = PACKAGE.safeParse(value);
  return parsed.success ? { ...parsed.data, raw: value as Readonly<Record<string, unknown>> } : undefined;
}
