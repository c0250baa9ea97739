import { detailMembers, type ItemShape } from './item-details.ts';
import type { Numbering } from './product-numbers.ts';

/** Renders one product as JSON text. */
export type RenderItem = (index: number, version: number, withdrawn: boolean) => string;

function quoted(isbn: string | null): string {
  return isbn === null ? 'null' : `"${isbn}"`;
}

/** The text is a pure function of the seed, the arguments and the shape. */
export function itemRenderer(seed: number, numbering: Numbering, shape: ItemShape): RenderItem {
  const lean = !shape.details && shape.groups.size === 0;
  return (index, version, withdrawn) => {
    const end = withdrawn ? ',"distributable":false}' : '}';
    const vbid = numbering.vbid(index);
    const print = numbering.printIsbn(index);
    const electronic = numbering.eIsbn(index, version);
    if (lean) {
      return `{"vbid":"${vbid}","identifiers":{"print_isbn_canonical":${quoted(print)},"eisbn_canonical":${quoted(electronic)}}${end}`;
    }
    const members = detailMembers({ seed, index, version, vbid, print, electronic }, shape);
    return `{"vbid":"${vbid}",${members}${end}`;
  };
}
