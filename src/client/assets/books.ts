import { identifierIn } from '../errors/success-words.ts';
import { foundObject, writtenObject } from '../http/json-object.ts';
import { type CallOptions, callV4 } from '../http/json-request.ts';
import { pathPart } from '../http/path-segment.ts';
import type { Caller } from '../http/requester.ts';
import { optionsOf, requireObject } from '../input/call-options.ts';
import { ASSET_FIELDS, type Asset, assetOf } from './asset-response.ts';
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

/** @param path such as `/vital_books` */
export function createBooks(caller: Caller, path: string): Books {
  const at = (vbid: string): string => `${path}/${pathPart('vbid', vbid)}`;
  const answer = { read: assetOf, origin: caller.origin, path, name: 'books' };
  return {
    create: async (fields, options) => {
      const { signal } = optionsOf(options);
      requireObject('the book', fields);
      const about = { subject: 'new book', whoMayCall: OWNERS_ONLY };
      const call = { method: 'POST', path, body: fields, signal, repeatable: false, freeform: true } as const;
      const how = { fields: ASSET_FIELDS, creates: 'vbid' };
      const answered = await callV4(caller, { ...call, ...how, ...about });
      const vbid = identifierIn(answered.value);
      return { ...writtenObject(answered, { ...answer, creates: 'vbid' }), ...(vbid !== undefined && { vbid }) };
    },
    read: async (vbid, options) => {
      const { signal } = optionsOf(options);
      const about = { subject: `book ${vbid}`, whoMayCall: 'This API key may not read this book.' };
      const call = { method: 'GET', path: at(vbid), signal, repeatable: true, fields: ASSET_FIELDS } as const;
      return foundObject(await callV4(caller, { ...call, ...about, identified: true }), answer);
    },
    update: async (vbid, fields, options) => {
      const { signal } = optionsOf(options);
      requireObject('the book', fields);
      const about = { subject: `book ${vbid}`, whoMayCall: OWNERS_ONLY };
      const answered = await callV4(caller, {
        ...{ method: 'PUT', path: at(vbid), body: fields, signal, ...about },
        ...{ freeform: true, fields: ASSET_FIELDS, identified: true },
        // As with assets: a file would be ingested once more.
        repeatable: fields.url === undefined,
      });
      return writtenObject(answered, answer);
    },
  };
}
