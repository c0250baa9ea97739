import { type ParsedAnswer, requireFields } from '../http/answer.ts';
import type { Caller } from '../http/caller.ts';
import { type CallOptions, signalOf } from '../input/call-options.ts';
import { OBJECT, parseInput } from '../input/parse-input.ts';
import { ASSET_FIELDS, type Asset, assetOf } from './asset-response.ts';
import { OWNERS_ONLY, type WrittenAsset, writtenAsset } from './assets.ts';

/** The interface does not show the fields: they are sent unchanged. @rule 4.5-1..3, 9-2 */
export type BookFields = Readonly<Record<string, unknown>>;

/** The interface does not show the answer: it is read as an asset (2.2), in JSON or XML, and `raw` has all of it. */
export type Book = Asset;

export type Books = ReturnType<typeof createBooks>;

/**
 * Books: `/vital_books` (interface, 4.5; the shape is not shown there). The path can be configured: `booksPath`,
 * `CATCHWORD_BOOKS_PATH`.
 *
 * Each throws CatchwordError USAGE, SERVICE_FORBIDDEN (403), SERVICE_INVALID (422), NOT_FOUND, SOURCE_*, INTERRUPTED.
 */
export function createBooks(caller: Caller, path: string) {
  const common = {
    format: 'json',
    token: false,
    fields: ASSET_FIELDS,
    whoMayCall: OWNERS_ONLY,
  } as const;
  const of = (vbid: string) => ({ ...common, path: `${path}/:vbid`, values: { vbid }, subject: `book ${vbid}` });
  return {
    /** `POST`; the service assigns the identifier, which the caller should store. Not retried once it may have arrived. */
    create: async (fields: BookFields, options?: CallOptions): Promise<WrittenAsset> => {
      const body = parseInput('the book', OBJECT, fields);
      const create = { ...common, method: 'POST', path, repeatable: false, creates: 'vbid', body } as const;
      const read = (answer: ParsedAnswer) => writtenAsset(answer, null);
      return await caller.call({ ...create, subject: 'new book', read }, signalOf(options));
    },
    read: async (vbid: string, options?: CallOptions): Promise<Book> => {
      const whoMayCall = 'This API key may not read this book.';
      const read = (answer: ParsedAnswer) => assetOf(requireFields(answer, path));
      return await caller.call({ ...of(vbid), method: 'GET', repeatable: true, whoMayCall, read }, signalOf(options));
    },
    /** `PUT`. The answer may be empty: then `raw` is, too. */
    update: async (vbid: string, fields: BookFields, options?: CallOptions): Promise<Book> => {
      const body = parseInput('the book', OBJECT, fields);
      // A second request would ingest the file twice.
      const repeatable = body.url === undefined;
      const read = (answer: ParsedAnswer) =>
        answer.value?.vbid == null ? assetOf(answer.value) : writtenAsset(answer, vbid);
      return await caller.call({ ...of(vbid), method: 'PUT', repeatable, body, read }, signalOf(options));
    },
  };
}
