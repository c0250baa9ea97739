import { z } from 'zod';
import { CatchwordError, messageOf } from '../errors.ts';
import { badByteIn } from './byte-text.ts';
import { cutPage, objectMembers } from './json-text.ts';
import type { Envelope, FetchTask, Page, RejectedItem, Window } from './page.ts';
import { type Product, productOf } from './product.ts';

/** Services write numbers as text here and there. */
const total = z.union(
  [
    z.int().min(0),
    z
      .string()
      .regex(/^\d{1,15}$/)
      .transform(Number),
  ],
  'a whole number of 0 or more is needed',
);

const ENVELOPE = z.looseObject(
  {
    num_items: total,
    page: total,
    per_page: total,
    total_pages: total,
    items: z.array(z.unknown(), 'an array is needed'),
  },
  'an object is needed',
);

const VBID = z
  .string('a text is needed')
  .refine((vbid) => vbid.trim() !== '', 'it is empty')
  .refine((vbid) => vbid.length <= 255, 'it is longer than 255 characters')
  .refine((vbid) => !/\p{Cc}/u.test(vbid), 'it holds a control character')
  // SQLite would keep U+FFFD for each, and two products would become one.
  .refine((vbid) => vbid.isWellFormed(), 'it holds half of a surrogate pair');

/** Characters of a number that a reason repeats. */
const MAX_SHOWN = 40;

/** A catalog item is nested five deep; this is room for what nobody has thought of. */
const MAX_DEPTH = 64;

function invalid(message: string, retryable = true): CatchwordError {
  return new CatchwordError('PAGE_INVALID', message, {
    retryable,
    hint: 'The source answered with a page that does not fit what was asked. Check it with: npx catchword doctor.',
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
 * The envelope must name the page that was asked for. A page of another size than asked is for the reader to deal with.
 * @returns why the totals contradict what the page holds; null where they agree
 */
function checkEnvelope({ page, perPage, numItems, totalPages }: Envelope, items: number, window: Window) {
  if (page !== window.page) throw invalid(`asked for page ${window.page}, got page ${page}`);
  if (items > perPage) throw invalid(`page ${page} holds ${items} items, more than the ${perPage} it may`);
  if (page < totalPages && items < perPage) {
    return `page ${page} of ${totalPages} holds ${items} items in place of ${perPage}`;
  }
  const expected = Math.max(0, numItems - (page - 1) * perPage);
  if (items < perPage && page >= totalPages && items !== expected) {
    return `page ${page} of ${totalPages} holds ${items} items; of ${numItems} it should hold ${expected}`;
  }
  return null;
}

const WHOLE_NUMBER = /^\d+$/;

/** Of a number the digits as they were sent: parsed, two long ones could become the same. */
function keyOf(vbid: unknown, body: string): unknown {
  return typeof vbid === 'number' ? objectMembers(body).get('vbid') : vbid;
}

/** @returns the product, or the reason why the item is not one */
function readItem(item: unknown, body: string): Product | string {
  const bad = body.isWellFormed() ? null : badByteIn(body);
  if (bad !== null) {
    const byte = `0x${bad.byte.toString(16).padStart(2, '0')}`;
    return `it is not UTF-8: byte ${byte} after ${bad.at} characters`;
  }
  if (typeof item !== 'object' || item === null || Array.isArray(item)) return 'the item is not an object';
  const fields = item as Readonly<Record<string, unknown>>;
  const key = keyOf(fields.vbid, body);
  if (typeof fields.vbid === 'number' && !WHOLE_NUMBER.test(String(key))) {
    return `vbid: ${String(key).slice(0, MAX_SHOWN)} is not a whole number of 0 or more`;
  }
  // Only what is relied on is checked; a schema for the whole item would copy it, a million times a night.
  const vbid = VBID.safeParse(key);
  return vbid.success ? productOf(vbid.data, fields, body) : `vbid: ${vbid.error.issues[0]?.message}`;
}

/**
 * Reads a catalog page (interface, section 2.5). An item that cannot be used becomes a rejected item; the page goes on.
 * @param text the response body; it may hold bytes that are not UTF-8 (see `textOfBytes`), whose items are rejected
 * @param window what was asked
 * @throws CatchwordError PAGE_INVALID where the page as a whole cannot be what was asked
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
  if (bodies.length !== items.length) throw invalid(`page ${page} holds "items" in a form that cannot be read`);
  const rejected: RejectedItem[] = [];
  const products = bodies.map((body, position) => {
    const product = readItem(items[position], body);
    if (typeof product !== 'string') return product;
    // What stands for bytes that are not UTF-8 is shown as U+FFFD.
    rejected.push({ position, reason: product, body: body.toWellFormed() });
    return null;
  });
  return { envelope, products, rejected, doubt };
}

/**
 * Reads the answer to a point lookup (interface: `GET /v4/products/:vbid`) as a page of one product, or of none where the
 * service does not know it.
 * @param text the response body; empty for "not found"
 * @throws CatchwordError PAGE_INVALID where it is another product, or none
 */
export function validateLookup(text: string, vbid: string, window: Window): Page {
  const envelope = { numItems: 1, page: window.page, perPage: window.perPage, totalPages: window.page };
  if (text === '') return { envelope: { ...envelope, numItems: 0 }, products: [], rejected: [], doubt: null };
  if (cutPage(text, MAX_DEPTH) === null) throw invalid(`the product is nested deeper than ${MAX_DEPTH}`);
  const item = parseJson(text);
  const product = readItem(item, text.trim());
  if (typeof product === 'string') throw invalid(`the answer to a lookup of ${vbid} is not a product (${product})`);
  if (product.vbid !== vbid) throw invalid(`asked for product ${vbid}, got ${product.vbid}`);
  return { envelope, products: [product], rejected: [], doubt: null };
}

/** What the answer to `task` holds, wherever it comes from. */
export function pageOf(text: string, { window, vbid }: Pick<FetchTask, 'window' | 'vbid'>): Page {
  return vbid === undefined ? validatePage(text, window) : validateLookup(text, vbid, window);
}
