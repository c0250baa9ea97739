import { isPlain } from '@catchword/base/plain';
import type { PageItems } from '@catchword/catalog/page-items';
import type { Reader } from '../../store/schema/reader.ts';
import type { RunSettings } from '../run-settings.ts';

/** Neighbouring items of a page. */
export interface Part {
  readonly from: number;
  readonly to: number;
}

/** A smaller part of a page is inserted one by one: a statement for a part reads all rows of the page. */
const LEAST_PART = 1 / 20;
/** The share of a page at each of its ends that may overlap with other pages. */
const END = 1 / 10;

function neighbours(positions: readonly number[]): Part[] {
  const parts: { from: number; to: number }[] = [];
  for (const position of positions) {
    const last = parts.at(-1);
    if (last?.to === position - 1) last.to = position;
    else parts.push({ from: position, to: position });
  }
  return parts;
}

/**
 * Runs of consecutive new items that SQLite can insert from the rows of the page: each would be judged `new`. A first load
 * takes a third of the time.
 * @param open positions of the items that are not judged yet
 * @param lookUpAll whether to look up every item; otherwise only those near the ends of the page, and SQLite may refuse to
 *   insert one in its middle: looking them up took 5% of the main thread's time in a first load
 */
export function newRows(
  products: Pick<Reader['products'], 'known'>,
  { withdrawnAs }: Pick<RunSettings, 'withdrawnAs'>,
  items: PageItems,
  open: readonly number[],
  lookUpAll: boolean,
): Part[] {
  if (isPlain || !items.isComplete) return [];
  const end = lookUpAll ? items.count : Math.ceil(items.count * END);
  const known = new Set(products.known({ ...items, from: end, to: items.count - end }));
  if (withdrawnAs === 'removed') for (const position of items.withdrawn) known.add(position);
  const parts = neighbours(open.filter((position) => !known.has(position)));
  return parts.filter(({ from, to }) => to - from + 1 >= items.count * LEAST_PART);
}
