import { z } from 'zod';
import { itemRenderer } from './item.ts';
import type { Shelf } from './operations/products.ts';

/** What a license tells of the book it is for. */
export interface Title {
  readonly name: string;
  readonly publisher: string;
  readonly kind: string;
  readonly isbn: string;
}

/** Tells of a title of the catalog, withdrawn ones too; null where it has none of this vbid. */
export type TitleOf = (vbid: string) => Title | null;

const DETAILS = { details: true, groups: new Set<never>(), currencies: new Set<never>() };
const item = z.object({ title: z.string(), publisher: z.string(), kind: z.string() });

export function createTitles({ catalog, numbering, seed }: Shelf): TitleOf {
  const render = itemRenderer(seed, numbering, DETAILS);
  return (vbid) => {
    const index = numbering.indexOf(vbid);
    const product = index === null ? null : catalog.find(index);
    if (product === null) return null;
    const { title, publisher, kind } = item.parse(JSON.parse(render(product.index, product.version, false)));
    return { name: title, publisher, kind, isbn: vbid };
  };
}
