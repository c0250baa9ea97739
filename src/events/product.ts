import * as z from 'zod';

/*
 * The fields of a product that services are known to send. catchword passes on what the source sent: only the key was
 * checked, so the types are what to expect, not what was validated. A field that is not listed here is kept.
 */

/** A field of the source: typed, described, and not checked. */
function sent<T>(description: string) {
  return z.custom<T>().optional().meta({ description });
}

type Text = string | null;
/** Some services send numbers as text, or text as numbers. */
type Numeric = string | number | null;
/** A name, or an object with one. */
type Named = string | { readonly name?: string; readonly value?: string; readonly [field: string]: unknown } | null;

export interface Identifiers {
  readonly print_isbn_canonical?: Numeric;
  readonly eisbn_canonical?: Numeric;
  readonly [field: string]: unknown;
}

export interface Contributor {
  readonly name?: string;
  /** Such as `author`. */
  readonly type?: string;
  readonly [field: string]: unknown;
}

export interface Price {
  readonly type?: string;
  readonly value?: Numeric;
  /** ISO 4217. */
  readonly currency?: string;
  readonly [field: string]: unknown;
}

export interface Variant {
  readonly sku?: string;
  /** Such as `single` or `rental`. */
  readonly type?: string;
  /** A number of days, or `perpetual`. */
  readonly duration?: Numeric;
  readonly online_duration?: Numeric;
  readonly prices?: readonly Price[];
  readonly [field: string]: unknown;
}

export interface Subject {
  readonly name?: string;
  readonly code?: string;
  readonly schema?: string;
  readonly [field: string]: unknown;
}

export interface Links {
  readonly cover_image?: Text;
  readonly [name: string]: unknown;
}

const FIELDS = {
  identifiers: sent<Identifiers | null>('ISBNs and other numbers, by their names.'),
  title: sent<Text>('The title.'),
  subtitle: sent<Text>('The subtitle.'),
  kind: sent<Named>('A name such as `book`, or an object with a name.'),
  format: sent<Named>('A name such as `epub`, or an object with a name.'),
  publisher: sent<Named>('A name, or an object with a name.'),
  edition: sent<Numeric>('The edition: a number or a text.'),
  contributors: sent<readonly Contributor[] | null>('Authors, editors and others, in the order of the source.'),
  language: sent<Text>('A code or a name.'),
  created: sent<Text>('When the source created it, usually an ISO 8601 time.'),
  on_sale_date: sent<Text>('From when it may be sold, usually an ISO 8601 date.'),
  off_sale_date: sent<Text>('Until when it may be sold, usually an ISO 8601 date.'),
  distributable: sent<boolean | string | null>('False if the product is withdrawn. Absent: it may be sold.'),
  print_restrictions: sent<Numeric>('Pages that a reader may print; -1: unlimited.'),
  copy_restrictions: sent<Numeric>('Pages that a reader may copy; -1: unlimited.'),
  variants: sent<readonly Variant[] | null>('What is sold, with its prices.'),
  resource_links: sent<Links | null>('Addresses of the cover and of other resources.'),
  sales_rights: sent<readonly string[] | null>('Countries where it may be sold (ISO 3166).'),
  exclude_sales_rights: sent<readonly string[] | null>('Countries where it may not be sold.'),
  subjects: sent<readonly Subject[] | null>('Subjects, if `include_details` asks for them.'),
  metadata: sent<Readonly<Record<string, unknown>> | null>(
    'Description and dates, if `include_details` asks for them.',
  ),
};

/** A catalog item as the source sent it. */
export const PRODUCT = z
  .looseObject({
    vbid: z.union([z.string(), z.number()]).meta({ description: 'The key, as the source wrote it.' }),
    ...FIELDS,
  })
  .meta({
    id: 'Product',
    description: 'A catalog item exactly as the source sent it. Fields that are not listed here are kept.',
  });

/** Some fields of a catalog item. */
export const PARTIAL_PRODUCT = z
  .looseObject(FIELDS)
  .meta({ id: 'ChangedFields', description: 'The previous values of the changed fields.' });

/**
 * A catalog item as the source sent it: its known fields typed, all others kept. The types are what to expect, not what
 * was validated.
 */
export type CatalogProduct = z.output<typeof PRODUCT>;
