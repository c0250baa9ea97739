import { CatchwordError } from '../../errors.ts';
import { ASSET_FIELDS, type Asset, assetOf } from '../asset-response.ts';
import { optionsOf, requireObject } from '../call-options.ts';
import type { Caller } from '../caller.ts';
import { pathPart } from '../path-part.ts';
import { type CallOptions, callV4 } from '../v4-call.ts';
import { OWNERS_ONLY } from './assets.ts';

/** The interface does not show what these operations take: what is given is sent as it is. */
export type BookFields = Readonly<Record<string, unknown>>;

/**
 * Nor what they answer: it is read as an asset (section 2.2), with all of it in `raw`. A text in place of an object is
 * `raw.text`.
 */
export type Book = Asset;

/**
 * Books: `/vital_books` (interface, 4.5; shape not shown). The path can be configured: `booksPath`, `CATCHWORD_BOOKS_PATH`.
 *
 * Each throws CatchwordError USAGE, SERVICE_FORBIDDEN (403), SERVICE_INVALID (422), NOT_FOUND, SOURCE_*, INTERRUPTED.
 */
export interface Books {
  /** `POST`; the service makes the identifier, and the caller is to store it. Not tried again once it may have arrived. */
  create(fields: BookFields, options?: CallOptions): Promise<Book>;
  read(vbid: string, options?: CallOptions): Promise<Book>;
  update(vbid: string, fields: BookFields, options?: CallOptions): Promise<Book>;
}

/** An identifier alone: one word with a digit in it, so that `created` is none. */
const VBID = /^(?=\D*\d)[\w.:-]{1,255}$/;

function newBookOf(value: unknown, origin: string, path: string): Book {
  const book = bookOf(value, origin, path);
  return typeof value === 'string' && VBID.test(value.trim()) ? { ...book, vbid: value.trim() } : book;
}

function bookOf(value: unknown, origin: string, path: string): Book {
  // An empty answer says that it is done, and nothing else.
  const book = assetOf(typeof value === 'string' ? { text: value } : (value ?? {}));
  if (book !== undefined) return book;
  throw new CatchwordError('SERVICE_ERROR', `${origin} answered with JSON that is no object`, {
    hint: `Check whether ${path} is the path of its books.`,
  });
}

/** @param path such as `/vital_books` */
export function createBooks(caller: Caller, path: string): Books {
  const at = (vbid: string): string => `${path}/${pathPart('vbid', vbid)}`;
  return {
    create: async (fields, options) => {
      const { signal } = optionsOf(options);
      requireObject('the book', fields);
      const about = { subject: 'new book', whoMayCall: OWNERS_ONLY };
      const call = { method: 'POST', path, body: fields, signal, repeatable: false, freeform: true } as const;
      const { value } = await callV4(caller, { ...call, fields: ASSET_FIELDS, ...about });
      return newBookOf(value, caller.origin, path);
    },
    read: async (vbid, options) => {
      const { signal } = optionsOf(options);
      const about = { subject: `book ${vbid}`, whoMayCall: 'This API key may not read this book.' };
      const call = { method: 'GET', path: at(vbid), signal, repeatable: true, fields: ASSET_FIELDS } as const;
      const { value } = await callV4(caller, { ...call, ...about, identified: true });
      return bookOf(value, caller.origin, path);
    },
    update: async (vbid, fields, options) => {
      const { signal } = optionsOf(options);
      requireObject('the book', fields);
      const about = { subject: `book ${vbid}`, whoMayCall: OWNERS_ONLY };
      const { value } = await callV4(caller, {
        ...{ method: 'PUT', path: at(vbid), body: fields, signal, ...about },
        ...{ freeform: true, fields: ASSET_FIELDS, identified: true },
        // As with assets: a file would be ingested once more.
        repeatable: fields.url === undefined,
      });
      return bookOf(value, caller.origin, path);
    },
  };
}
