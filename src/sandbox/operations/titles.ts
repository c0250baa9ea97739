import { z } from 'zod';
import { itemsFor, type Shelf } from './products.ts';

/** What a license tells of the book it is for. */
export interface Title {
  readonly name: string;
  readonly publisher: string;
  readonly kind: string;
  readonly isbn: string;
}

/** Tells of a product or an asset, on sale or not; null where there is none of this vbid. */
export type TitleOf = (vbid: string) => Title | null;

/** Assets that were created need not have all of it. */
const item = z.object({
  title: z.string().default(''),
  publisher: z.string().nullish(),
  kind: z.string().default('book'),
});

export function createTitles(shelf: Shelf): TitleOf {
  const { catalog, assets } = shelf;
  // No price is in this currency: the texts are shorter.
  const render = itemsFor({ ...shelf, details: true }, new URLSearchParams({ currency: 'XXX' }));
  return (vbid) => {
    const index = assets.indexOf(vbid);
    if (index === null || typeof render !== 'function') return null;
    const product = catalog.find(index);
    if (product === null && !assets.written.has(index)) return null;
    const { title, publisher, kind } = item.parse(JSON.parse(render(index, product?.version ?? 0, false)));
    return { name: title, publisher: publisher ?? '', kind, isbn: /^\d{9}[\dX]$|^\d{13}$/.test(vbid) ? vbid : '' };
  };
}
