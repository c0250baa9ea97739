import * as z from 'zod';
import { type Form, MEMBERS, type MembersAs, type PartsAs, type Stored } from './fields.ts';

/*
 * The fields of a product that services are known to send. catchword passes on what the source sent: only the key was
 * checked, so the types say what to expect: nothing validated them. A field that is not listed here is kept.
 */

type Text = string | null;
/** A number: some services send numbers as text, or text as numbers. */
export type Numeric = string | number | null;
type Named = string | { readonly name?: string; readonly value?: string; readonly [field: string]: unknown } | null;

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
  readonly distributable?: boolean | string;
  readonly prices?: readonly Price[];
  readonly [field: string]: unknown;
}

export interface Subject {
  readonly name?: string;
  readonly code?: string;
  readonly schema?: string;
  readonly [field: string]: unknown;
}

/** Members of a member of the item that the table of fields names. */
type Parts<F extends Form> = (PartsAs<F, Sent> & { readonly [name: string]: unknown }) | null;

/** Values that services send, by the form of a field. */
export interface Sent extends Record<Form, unknown> {
  readonly text: Text;
  readonly link: Text;
  readonly numeric: Numeric;
  readonly isbn: Numeric;
  readonly name: Named;
  readonly names: readonly Contributor[] | null;
  readonly sellable: boolean | string | null;
  readonly identifiers: Parts<'identifiers'>;
  readonly links: Parts<'links'>;
  readonly variants: readonly Variant[] | null;
  readonly subjects: readonly Subject[] | null;
  readonly texts: readonly string[] | null;
  readonly object: Readonly<Record<string, unknown>> | null;
}

type SentFields = { readonly [N in keyof MembersAs<Sent>]: z.ZodOptional<z.ZodCustom<MembersAs<Sent>[N]>> };
/** The fields of the source: typed, described, and not checked. */
const FIELDS = Object.fromEntries(
  MEMBERS.map(({ path, about }) => [path, z.custom().optional().meta({ description: about })]),
) as unknown as SentFields;

export const PRODUCT = z
  .looseObject({
    vbid: z.union([z.string(), z.number()]).meta({ description: 'The key, as the source wrote it.' }),
    ...FIELDS,
  })
  .meta({
    id: 'Product',
    description: 'A catalog item exactly as the source sent it. Fields that are not listed here are kept.',
  });

export const PARTIAL_PRODUCT = z
  .looseObject(FIELDS)
  .meta({ id: 'ChangedFields', description: 'The previous values of the changed fields.' });

/** A catalog item as the source sent it: its known fields typed, but not validated, all others kept. */
export type CatalogProduct = z.output<typeof PRODUCT>;

/** A product, with the fields that a search finds it by. */
export interface CatalogItem extends Stored {
  readonly vbid: string;
  /** The product as the source sent it, parsed: long numbers are rounded. */
  readonly product: CatalogProduct;
  /** The same as JSON text, byte by byte. */
  readonly body: string;
}
