import { recordOf } from '@catchword/base/record-of';
import * as z from 'zod';
import { PUBLISHERS } from '../catalog/title-words.ts';
import type { AssetFields } from './kept-asset.ts';

const generatedItem = z.object({
  ...recordOf(z.string(), 'title', 'subtitle', 'kind', 'language', 'on_sale_date', 'publisher', 'format', 'created'),
  /** NaN for the word "null", which is an oddity of services. */
  edition: z.coerce.number().catch(Number.NaN),
  contributors: z.array(z.object({ name: z.string() })),
  print_restrictions: z.number(),
  copy_restrictions: z.number(),
  sales_rights: z.array(z.string()),
  metadata: z.object({ description: z.string(), publication_date: z.string(), copyright_date: z.string() }),
  variants: z.array(
    z.object({
      duration: z.string(),
      prices: z.array(z.object({ type: z.string(), value: z.coerce.number(), currency: z.string() })),
    }),
  ),
});

/** A product, as the catalog renders it with all its fields, as an asset. Its ISBNs follow from its identifiers. */
export function generatedAsset(text: string) {
  const generated = generatedItem.parse(JSON.parse(text));
  const { publisher, edition, format, created, contributors, metadata, variants, ...rest } = generated;
  const { print_restrictions, copy_restrictions, sales_rights, ...same } = rest;
  const prices = variants.flatMap(({ duration, prices }) =>
    prices.map(({ type, value, currency }) => ({
      currency,
      type,
      amount: value,
      ...(duration !== 'perpetual' && { duration: Number(duration) }),
    })),
  );
  const fields: AssetFields = {
    ...same,
    ...metadata,
    ...(Number.isInteger(edition) && { edition }),
    author_name: contributors[0]?.name ?? '',
    imprint_id: 1 + PUBLISHERS.indexOf(publisher),
    print_drm_limit: print_restrictions,
    copy_drm_limit: copy_restrictions,
    sales_rights: { exclusive_rights: [], non_exclusive_rights: sales_rights, not_for_sale: null },
    prices,
  };
  return { fields, createdAt: Date.parse(created), format: format.toLowerCase() };
}
