import { validatePage } from '@catchword/catalog/validate-page';
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

/** Reads page after page, each when it is requested. @throws CatchwordError PAGE_INVALID, SOURCE_*, SERVICE_TOKEN, INTERRUPTED */
export async function* readPages(
  caller: Caller,
  settings: ProductSettings,
  { from, until, page: only, perPage }: ItemRange,
  signal: AbortSignal,
) {
  const first = only ?? 1;
  for (let page = first, last = first; page <= last; page++) {
    const window = { page, perPage };
    const operation = readProducts({ window, from, until }, settings);
    // Part of the call, so that a page that is not the requested one is requested again.
    const read = (answer: ParsedAnswer) => {
      const { body, sourceTime } = operation.read(answer);
      return { ...validatePage(body, window), sourceTime };
    };
    const found = await caller.call({ ...operation, read }, signal);
    yield found;
    // The catalog may have grown or shrunk since the last page.
    last = only ?? found.envelope.totalPages;
  }
}
