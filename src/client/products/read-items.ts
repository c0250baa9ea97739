import { bodyAt } from '../../catalog/page-items.ts';
import type { Envelope, PageResponse, Window } from '../../catalog/page-types.ts';
import { validatePage } from '../../catalog/validate-page.ts';
import type { ParsedAnswer } from '../http/answer.ts';
import type { Caller } from '../http/caller.ts';
import { type ProductSettings, readProducts } from './product-operations.ts';

/** Times are milliseconds since 1970; null: no limit. */
export interface ItemRange {
  readonly from: number | null;
  readonly until: number | null;
  /** The only page to read, from 1; undefined reads all pages. */
  readonly page: number | undefined;
  /** 1 to 1000. */
  readonly perPage: number;
}

export interface ItemsPage {
  readonly envelope: Envelope;
  /** JSON text of each item as the service sent it, valid or not. */
  readonly items: readonly string[];
  /** When the service answered by its own clock, milliseconds since 1970; null if unknown. */
  readonly sourceTime: number | null;
}

function itemsOf({ body, sourceTime }: PageResponse, window: Window): ItemsPage {
  const { envelope, items, rejected } = validatePage(body, window);
  const bodies = new Map(rejected.map(({ position, body }) => [position, body]));
  const texts = Array.from({ length: items.count }, (_, at) => bodies.get(at) ?? bodyAt(items, at));
  return { envelope, items: texts, sourceTime };
}

/**
 * Reads page after page of the catalog, each when it is requested.
 * @throws CatchwordError PAGE_INVALID, SOURCE_*, SERVICE_TOKEN, INTERRUPTED
 */
export async function* readItems(
  caller: Caller,
  settings: ProductSettings,
  { from, until, page: only, perPage }: ItemRange,
  signal: AbortSignal,
): AsyncGenerator<ItemsPage, void, undefined> {
  const first = only ?? 1;
  for (let page = first, last = first; page <= last; page++) {
    const window = { page, perPage };
    const operation = readProducts({ window, from, until }, settings);
    // Part of the call, so that a page that is not the requested one is requested again.
    const read = (answer: ParsedAnswer) => itemsOf(operation.read(answer), window);
    const found = await caller.call({ ...operation, read }, signal);
    yield found;
    // The catalog may have grown or shrunk since the last page.
    last = only ?? found.envelope.totalPages;
  }
}
