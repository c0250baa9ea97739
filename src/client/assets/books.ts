import { z } from 'zod';
import { requireFields } from '../http/answer.ts';
import type { Caller } from '../http/caller.ts';
import type { Endpoint } from '../http/endpoint.ts';
import type { Operation } from '../http/operation.ts';
import { type CallOptions, signalOf } from '../input/call-options.ts';
import { parseInput } from '../input/parse-input.ts';
import { ASSET_FIELDS, type Asset, assetOf } from './asset-response.ts';
import { OWNERS_ONLY } from './assets.ts';

/**
 * The interface does not show the fields: they are sent unchanged.
 * @rule 4.5-1..3, 9-2
 */
export type BookFields = Readonly<Record<string, unknown>>;

/** The interface does not show the answer: it is read as an asset (section 2.2), and `raw` has all of it. */
export type Book = Asset;

/**
 * Books: `/vital_books` (interface, 4.5; the shape is not shown there). The path can be configured: `booksPath`,
 * `CATCHWORD_BOOKS_PATH`.
 *
 * Each throws CatchwordError USAGE, SERVICE_FORBIDDEN (403), SERVICE_INVALID (422), NOT_FOUND, SOURCE_*, INTERRUPTED.
 */
export interface Books {
  /** `POST`; the service assigns the identifier, which the caller should store. Not retried once it may have arrived. */
  create(fields: BookFields, options?: CallOptions): Promise<Book>;
  read(vbid: string, options?: CallOptions): Promise<Book>;
  update(vbid: string, fields: BookFields, options?: CallOptions): Promise<Book>;
}

interface BookUpdate {
  readonly vbid: string;
  readonly fields: BookFields;
}

const BOOK = z.looseObject({}, 'must be an object');

function bodyOf(fields: BookFields): BookFields {
  return parseInput('the book', BOOK, fields);
}

function operationsAt(path: string) {
  const common = {
    format: 'json',
    token: false,
    fields: ASSET_FIELDS,
    whoMayCall: OWNERS_ONLY,
  } as const satisfies Partial<Endpoint>;
  const create: Operation<BookFields, Book> = {
    ...common,
    method: 'POST',
    path,
    repeatable: false,
    creates: 'vbid',
    request: (fields) => ({ body: bodyOf(fields), subject: 'new book' }),
    read: ({ value }) => assetOf(value),
  };
  const read: Operation<string, Book> = {
    ...common,
    method: 'GET',
    path: `${path}/:vbid`,
    repeatable: true,
    whoMayCall: 'This API key may not read this book.',
    request: (vbid) => ({ values: { vbid }, subject: `book ${vbid}` }),
    read: (answer) => assetOf(requireFields(answer, path)),
  };
  const update: Operation<BookUpdate, Book> = {
    ...common,
    method: 'PUT',
    path: `${path}/:vbid`,
    repeatable: true,
    request: ({ vbid, fields }) => ({ values: { vbid }, body: bodyOf(fields), subject: `book ${vbid}` }),
    read: ({ value }) => assetOf(value),
  };
  // A second request would ingest the file twice.
  return { create, read, update, ingest: { ...update, repeatable: false } };
}

/** @param path such as `/vital_books` */
export function createBooks(caller: Caller, path: string): Books {
  const { create, read, update, ingest } = operationsAt(path);
  return {
    create: async (fields, options) => await caller.call(create, fields, signalOf(options)),
    read: async (vbid, options) => await caller.call(read, vbid, signalOf(options)),
    update: async (vbid, fields, options) => {
      const signal = signalOf(options);
      return await caller.call(bodyOf(fields).url === undefined ? update : ingest, { vbid, fields }, signal);
    },
  };
}
