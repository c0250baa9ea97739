import { z } from 'zod';
import { CatchwordError, messageOf } from '../errors.ts';
import { badByteIn } from './byte-text.ts';
import { cutPage, objectMembers } from './json-text.ts';
import type { Envelope, FetchTask, Page, RejectedItem, Window } from './page.ts';
import { type Fields, type Product, productOf } from './product.ts';

/** Some services send these numbers as text. */
const totalText = z.string().regex(/^\d{1,15}$/);
const total = z.union([z.int().min(0), totalText.transform(Number)], 'must be a whole number of 0 or more');

const ENVELOPE = z.looseObject(
  {
    num_items: total,
    page: total,
    per_page: total,
    total_pages: total,
    items: z.array(z.unknown(), 'must be an array'),
  },
  'must be an object',
);

const VBID = z
  .string('must be a string')
  .refine((vbid) => vbid.trim() !== '', 'is empty')
  .refine((vbid) => vbid.length <= 255, 'is longer than 255 characters')
  .refine((vbid) => !/\p{Cc}/u.test(vbid), 'contains a control character')
  // SQLite would store U+FFFD instead, and two products would become one.
  .refine((vbid) => vbid.isWellFormed(), 'contains half of a surrogate pair');

/** Characters of a number that a reason shows. */
const MAX_SHOWN = 40;

/** A catalog item is nested five deep; this leaves room for unknown fields. */
const MAX_DEPTH = 64;

function invalid(message: string): CatchwordError {
  return new CatchwordError('PAGE_INVALID', message, {
    hint: 'The source returned a page that does not match the request. Check it with: npx catchword doctor.',
  });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw invalid(`the page is not JSON (${messageOf(error)})`);
  }
}

/**
 * Checks that the envelope names the requested page; the caller handles another size.
 * @returns why the totals contradict the page's items; null if they agree
 */
function checkEnvelope({ page, perPage, numItems, totalPages }: Envelope, items: number, window: Window) {
  if (page !== window.page) throw invalid(`requested page ${window.page}, got page ${page}`);
  if (items > perPage) throw invalid(`page ${page} has ${items} items, more than its per_page of ${perPage}`);
  if (page < totalPages && items < perPage) {
    return `page ${page} of ${totalPages} has ${items} items instead of ${perPage}`;
  }
  const expected = Math.max(0, numItems - (page - 1) * perPage);
  if (items < perPage && page >= totalPages && items !== expected) {
    return `page ${page} of ${totalPages} has ${items} items; with a total of ${numItems} it should have ${expected}`;
  }
  return null;
}

/** Returns the product, or the reason why the item is not valid. */
function readItem(item: unknown, body: string): Product | string {
  const bad = body.isWellFormed() ? null : badByteIn(body);
  if (bad !== null) {
    const byte = `0x${bad.byte.toString(16).padStart(2, '0')}`;
    return `invalid UTF-8: byte ${byte} after ${bad.at} characters`;
  }
  if (typeof item !== 'object' || item === null || Array.isArray(item)) return 'item is not an object';
  const fields = item as Fields;
  // A number as the digits that were sent, because parsing could make two long numbers equal.
  const key = typeof fields.vbid === 'number' ? objectMembers(body).get('vbid') : fields.vbid;
  if (typeof fields.vbid === 'number' && !/^\d+$/.test(String(key))) {
    return `vbid: ${String(key).slice(0, MAX_SHOWN)} is not a whole number of 0 or more`;
  }
  // Validates only the key: a schema for the whole item would copy it, a million times a night.
  const vbid = VBID.safeParse(key);
  return vbid.success ? productOf(vbid.data, fields, body) : `vbid ${vbid.error.issues[0]?.message}`;
}

/**
 * Validates a catalog page (interface, section 2.5). Invalid items are returned as rejected; the other items are used.
 * @param text the response body; items with bytes that are not UTF-8 (see `textOfBytes`) are rejected
 * @param window the requested window
 * @throws CatchwordError PAGE_INVALID if the page as a whole is not valid, or not the requested one
 * @rule 2.5-1..2, 4.4-11
 */
export function validatePage(text: string, window: Window): Page {
  const bodies = cutPage(text, MAX_DEPTH);
  if (bodies === null) throw invalid(`the page is nested deeper than ${MAX_DEPTH}`);
  const parsed = ENVELOPE.safeParse(parseJson(text));
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw invalid(`the page has no catalog envelope: ${issue?.path.join('.') || 'body'}: ${issue?.message}`);
  }
  const { items, num_items, page, per_page, total_pages } = parsed.data;
  const envelope = { numItems: num_items, page, perPage: per_page, totalPages: total_pages };
  const doubt = checkEnvelope(envelope, items.length, window);
  if (bodies.length !== items.length) throw invalid(`page ${page} has "items" in a form that cannot be read`);
  const rejected: RejectedItem[] = [];
  const products = bodies.map((body, position) => {
    const product = readItem(items[position], body);
    if (typeof product !== 'string') return product;
    // Escaped bytes are shown as U+FFFD.
    rejected.push({ position, reason: product, body: body.toWellFormed() });
    return null;
  });
  return { envelope, products, rejected, doubt };
}

/**
 * Validates the response to a point lookup (`GET /v4/products/:vbid`) as a page of one product, or none for "not found".
 * @param text the response body; empty for "not found"
 * @throws CatchwordError PAGE_INVALID if it is not a product, or another one
 */
export function validateLookup(text: string, vbid: string, window: Window): Page {
  const envelope = { numItems: 1, page: window.page, perPage: window.perPage, totalPages: window.page };
  if (text === '') return { envelope: { ...envelope, numItems: 0 }, products: [], rejected: [], doubt: null };
  if (cutPage(text, MAX_DEPTH) === null) throw invalid(`the product is nested deeper than ${MAX_DEPTH}`);
  const item = parseJson(text);
  const product = readItem(item, text.trim());
  if (typeof product === 'string') throw invalid(`the response to a lookup of ${vbid} is not a product (${product})`);
  if (product.vbid !== vbid) throw invalid(`requested product ${vbid}, got ${product.vbid}`);
  return { envelope, products: [product], rejected: [], doubt: null };
}

/** Validates the response to `task`, fetched here or in another process. */
export function pageOf(text: string, { window, vbid }: Pick<FetchTask, 'window' | 'vbid'>): Page {
  return vbid === undefined ? validatePage(text, window) : validateLookup(text, vbid, window);
}
