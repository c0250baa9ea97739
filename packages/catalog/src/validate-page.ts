import { isUtf8 } from 'node:buffer';
import { CatchwordError, hasCode, messageOf } from '@catchword/base/errors';
import * as z from 'zod';
import { membersParsed, membersWritten, scanPage } from './cut-page.ts';
import { type Fields, fieldsOf, isWithdrawn, storedOf } from './field-values.ts';
import { withoutRepeats } from './json-text.ts';
import { bodyAt, keyOf, type PageItems, productAt, ROW } from './page-items.ts';
import type { Envelope, FetchTask, Page, RejectedItem, Window } from './page-types.ts';
import { searchText } from './product.ts';
import type { Doubt } from './reasons.ts';
import { doubtsIn } from './said-error.ts';

/** Some services send these numbers as text. */
const totalText = z.string().regex(/^\d{1,15}$/);
const total = z.union([z.int().min(0), totalText.transform(Number)], 'must be a whole number of 0 or more');

const ENVELOPE = z.looseObject(
  {
    num_items: total,
    page: total,
    per_page: total,
    total_pages: total,
    // Behind the end of a list, some services write null, or nothing, instead of an empty array.
    items: z.array(z.unknown(), 'must be an array').nullish(),
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

/** Keys that satisfy VBID, as nearly all do: the schema takes six times as long. */
const PLAIN_VBID = /^[\w.:-]{1,255}$/;
/** SQLite ends a text from JSON at U+0000, and stores half of a surrogate pair as it is. */
const NOT_FOR_SQLITE = /\\u(?:0000|d[89a-f])/;
const SPACE = 32;

/** Characters of a number that a reason shows. */
const MAX_SHOWN = 40;

/** A catalog item is nested five deep; this leaves room for unknown fields. */
export const MAX_DEPTH = 64;

function invalid(message: string): CatchwordError {
  return new CatchwordError('PAGE_INVALID', message, {
    hint: 'The source returned a page that does not match the request. Check it with: npx catchword doctor.',
  });
}

function textOf({ buffer, byteOffset, length }: Uint8Array<ArrayBuffer>): string {
  return Buffer.from(buffer, byteOffset, length).toString('utf8');
}

/** Why a text is not JSON; null if it is. Node.js quotes a part of it, which may repeat a secret. */
function whyNotJson(text: string): { readonly reason: string; readonly isCut: boolean } | null {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    const message = messageOf(error);
    const at = / at position (\d+)/.exec(message);
    const isCut = /end of JSON|Unterminated string/.test(message) || Number(at?.[1]) >= text.length;
    return { reason: message.replace(/, (\.\.\.)?".*| (in JSON )?at position.*/s, ''), isCut };
  }
}

/** Why a text is not JSON, and after how many bytes: the longest beginning that could still become JSON ends there. */
function brokenPlace(text: string): { readonly reason: string; readonly byte: number } {
  const { reason = '', isCut = true } = whyNotJson(text) ?? {};
  let [good, bad] = [isCut ? text.length : 0, text.length];
  while (bad - good > 1) {
    const middle = (good + bad) >> 1;
    if (whyNotJson(text.slice(0, middle))?.isCut === false) bad = middle;
    else good = middle;
  }
  return { reason, byte: Buffer.byteLength(text.slice(0, good)) };
}

/** The key of a product whose item is not JSON, if it can be seen. */
function keyInBroken(text: string): string {
  const [, key] = /"vbid"\s*:\s*("[^"\\]{1,255}"|\d+)/.exec(text) ?? [];
  return key === undefined ? '' : `, of the product ${key.replaceAll('"', '')}`;
}

/** Bytes that are not UTF-8 are replaced: the items that they are in are rejected. @throws CatchwordError PAGE_BROKEN, PAGE_INVALID */
function parseJson(bytes: Uint8Array<ArrayBuffer>, { perPage }: Pick<Window, 'perPage'>): unknown {
  const text = textOf(bytes);
  try {
    return JSON.parse(text);
  } catch {
    const { reason, byte } = brokenPlace(text);
    // Not even the beginning of a page: no part of the list could be read.
    if (!/^\s*\{/.test(text)) throw invalid(`the page is not JSON (${reason})`);
    const of = perPage === 1 ? keyInBroken(text) : '';
    const hint = 'Tell the service where its answer is wrong: after so many bytes.';
    throw new CatchwordError('PAGE_BROKEN', `the page is not JSON (${reason}) after ${byte} bytes${of}`, { hint });
  }
}

/**
 * Checks that the envelope names the requested page; the caller handles another size.
 * @returns why the totals contradict the page's items; null if they agree
 */
function checkEnvelope({ page, perPage, numItems, totalPages }: Envelope, items: number, window: Window) {
  if (page !== window.page) throw invalid(`requested page ${window.page}, got page ${page}`);
  if (items > perPage) throw invalid(`page ${page} has ${items} items, more than its per_page of ${perPage}`);
  const contradiction = (said: string): Doubt => ({ code: 'contradiction', said });
  if (page < totalPages && items < perPage) {
    return contradiction(`page ${page} of ${totalPages} has ${items} items instead of ${perPage}`);
  }
  const expected = Math.max(0, numItems - (page - 1) * perPage);
  if (items < perPage && page >= totalPages && items !== expected) {
    const should = `with a total of ${numItems} it should have ${expected}`;
    return contradiction(`page ${page} of ${totalPages} has ${items} items; ${should}`);
  }
  return null;
}

function whyBroken(text: string): string {
  const { reason, byte } = brokenPlace(text);
  return `not JSON (${reason}) after ${byte} bytes of the item${keyInBroken(text)}`;
}

/** The key of an item, or the reason why the item is not valid. @param item undefined if it is not JSON */
export function checkItem(item: unknown, text: () => string): { readonly vbid: string } | string {
  if (item === undefined) return whyBroken(text());
  if (typeof item !== 'object' || item === null || Array.isArray(item)) return 'item is not an object';
  const fields = item as Fields;
  const key = typeof fields.vbid === 'number' ? keyOf(fields, text()) : fields.vbid;
  if (typeof fields.vbid === 'number' && !/^\d+$/.test(String(key))) {
    return `vbid: ${String(key).slice(0, MAX_SHOWN)} is not a whole number of 0 or more`;
  }
  // Validates only the key: a schema for the whole item would copy it, a million times a night.
  if (typeof key === 'string' && PLAIN_VBID.test(key)) return { vbid: key };
  const vbid = VBID.safeParse(key);
  return vbid.success ? { vbid: vbid.data } : `vbid ${vbid.error.issues[0]?.message}`;
}

function rowOf(vbid: string, from: number, length: number, fields: Fields): readonly unknown[] {
  const columns = storedOf(fields);
  const search = searchText(fields, vbid, columns);
  const row = [vbid, from, length, ...columns, isWithdrawn(fields) ? 1 : 0];
  return search === null ? row : [...row, search.title, search.contributors, search.publisher, search.identifiers];
}

/** `values`: one for each span. */
type Parsed = Pick<PageItems, 'bytes' | 'spans'> & { readonly values: readonly unknown[] };

function packItems({ bytes, spans, values }: Parsed, filling: boolean): Pick<Page, 'items' | 'rejected'> {
  const rejected: RejectedItem[] = [];
  const withdrawn: number[] = [];
  const seen = new Set<string>();
  const used = new Set<number>();
  let hasWords = false;
  const isText = isUtf8(bytes);
  const rows = values.map((value, position) => {
    const [start = 0, length = 0] = spans.subarray(2 * position, 2 * position + 2);
    const read = () => bodyAt({ bytes, spans }, position);
    const checked = (isText ? null : notUtf8(bytes.subarray(start, start + length))) ?? checkItem(value, read);
    if (typeof checked === 'string') {
      rejected.push({ position, reason: checked, body: read() });
      return null;
    }
    const fields = value as Fields;
    const from = start + 1;
    if (isWithdrawn(fields)) withdrawn.push(position);
    if (!filling) return [checked.vbid, from, length];
    seen.add(checked.vbid);
    const row = rowOf(checked.vbid, from, length, fields);
    hasWords ||= row.length > ROW.words;
    for (let at = ROW.stored; at < ROW.words; at++) if (row[at] !== null && row[at] !== 0) used.add(at);
    return row;
  });
  const text = JSON.stringify(rows);
  const isComplete = filling && seen.size === rows.length - rejected.length && !NOT_FOR_SQLITE.test(text);
  const about = { isComplete, used: [...used], hasWords, withdrawn };
  return { items: { count: values.length, bytes, spans, rows: text, ...about }, rejected };
}

/**
 * The items with each member once: of a member that an object has twice, JavaScript and PostgreSQL read the last one, and
 * SQLite the first. Such items are rewritten, all others stay byte by byte.
 */
function withEachMemberOnce({ bytes, spans, values }: Parsed): Parsed {
  const parts: Uint8Array[] = [];
  const own = new Uint32Array(spans.length);
  /** By how much items have moved, in bytes, and how far `bytes` are taken over. */
  let [shift, taken] = [0, 0];
  values.forEach((value, at) => {
    const [start = 0, length = 0] = spans.subarray(2 * at, 2 * at + 2);
    const item = bytes.subarray(start, start + length);
    const isTwice = value !== undefined && membersWritten(item) !== membersParsed(value);
    const text = isTwice ? Buffer.from(withoutRepeats(textOf(item))) : item;
    own.set([start + shift, text.length], 2 * at);
    parts.push(bytes.subarray(taken, start), text);
    shift += text.length - length;
    taken = start + length;
  });
  parts.push(bytes.subarray(taken));
  return { bytes: Uint8Array.from(Buffer.concat(parts)), spans: own, values };
}

/** Why an item is not UTF-8; null if it is. */
function notUtf8(bytes: Uint8Array<ArrayBuffer>): string | null {
  if (isUtf8(bytes)) return null;
  const { buffer, byteOffset, length: size } = bytes;
  const written = Buffer.from(Buffer.from(buffer, byteOffset, size).toString('utf8'));
  let wrong = written.findIndex((byte, at) => byte !== bytes[at]);
  // What is not UTF-8 may begin with the bytes of the character that the decoder wrote instead.
  while (((written[wrong] ?? 0) & 0xc0) === 0x80) wrong--;
  const { length } = written.toString('utf8', 0, wrong);
  return `invalid UTF-8: byte 0x${bytes[wrong]?.toString(16)} after ${length} characters`;
}

/**
 * Parses and checks the envelope of a page.
 * @param count of items, if `bytes` have others in their place
 * @throws CatchwordError PAGE_INVALID
 */
export function envelopeOf(bytes: Uint8Array<ArrayBuffer>, window: Window, count?: number) {
  const value = parseJson(bytes, window);
  requireSilence(value);
  const parsed = ENVELOPE.safeParse(value);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw invalid(`the page has no catalog envelope: ${issue?.path.join('.') || 'body'}: ${issue?.message}`);
  }
  const { items, num_items, page, per_page, total_pages } = parsed.data;
  if (items == null && (page === 1 || num_items > (page - 1) * per_page)) {
    throw invalid('the page has no catalog envelope: items: must be an array');
  }
  const values: readonly unknown[] = items ?? [];
  const envelope = { numItems: num_items, page, perPage: per_page, totalPages: total_pages };
  return { envelope, doubt: checkEnvelope(envelope, count ?? values.length, window), values };
}

/** Characters of an answer's own words. They are masked and cut where they are shown. */
const MAX_WORDS = 4_000;

/** @throws CatchwordError SOURCE_UNAVAILABLE with the service's own words if an answer says that it is an error, or not whole */
function requireSilence(value: unknown): void {
  const doubts = doubtsIn(fieldsOf(value));
  if (doubts.length === 0) return;
  throw new CatchwordError('SOURCE_UNAVAILABLE', `the answer says “${doubts.join('; ').slice(0, MAX_WORDS)}”`, {
    hint: 'Retry later: the service answers with a good status, and says that it is in trouble.',
  });
}

/** As `envelopeOf`, for a page of which only items are not JSON: their values are undefined. Null if more is broken. */
function envelopeApart(bytes: Uint8Array<ArrayBuffer>, spans: Uint32Array<ArrayBuffer>, window: Window) {
  const texts = Array.from({ length: spans.length / 2 }, (_, at) => bodyAt({ bytes, spans }, at));
  const values = texts.map((text) => (whyNotJson(text) === null ? (JSON.parse(text) as unknown) : undefined));
  if (!values.includes(undefined)) return null;
  const end = (spans.at(-2) ?? 0) + (spans.at(-1) ?? 0);
  const rest = Buffer.concat([bytes.subarray(0, spans[0]), Buffer.from('0'), bytes.subarray(end)]);
  if (whyNotJson(rest.toString('utf8')) !== null) return null;
  return { ...envelopeOf(Uint8Array.from(rest), window, values.length), values };
}

/** As `envelopeOf`, for a page with items, some of which may not be JSON. */
function readPage(bytes: Uint8Array<ArrayBuffer>, spans: Uint32Array<ArrayBuffer>, window: Window) {
  try {
    return envelopeOf(bytes, window);
  } catch (error) {
    const apart = hasCode(error, 'PAGE_BROKEN') ? envelopeApart(bytes, spans, window) : null;
    if (apart === null) throw error;
    return apart;
  }
}

/**
 * Validates a catalog page (interface, section 2.5). Invalid items, also those that are not UTF-8, are rejected.
 * @param filling makes complete rows
 * @throws CatchwordError PAGE_INVALID if the page as a whole is not valid, or not the requested one
 * @rule 2.5-1..2, 4.4-11
 */
export function validatePage(bytes: Uint8Array<ArrayBuffer>, window: Window, filling = false): Page {
  const cut = scanPage(bytes, MAX_DEPTH);
  if (cut === null) throw invalid(`the page is nested deeper than ${MAX_DEPTH}`);
  const { spans, members } = cut;
  const { envelope, doubt, values } = readPage(bytes, spans, window);
  if (spans.length !== 2 * values.length) {
    throw invalid(`page ${envelope.page} has "items" in a form that cannot be read`);
  }
  const isDamaged = values.includes(undefined);
  const sent = { bytes, spans, values };
  const items = membersParsed(values) === members ? sent : withEachMemberOnce(sent);
  return { envelope, ...packItems(items, filling), doubt, ...(isDamaged && { isDamaged }) };
}

/**
 * Validates the response to a point lookup (`GET /v4/products/:vbid`) as a page of one product, or none for "not found".
 * @param bytes the response body; empty for "not found"
 * @throws CatchwordError PAGE_INVALID if it is not a product, or another one
 */
export function validateLookup(bytes: Uint8Array<ArrayBuffer>, vbid: string, window: Window): Page {
  const envelope = { numItems: 1, page: window.page, perPage: window.perPage, totalPages: window.page };
  const none = { bytes, spans: new Uint32Array(), values: [] };
  if (bytes.length === 0) return { envelope: { ...envelope, numItems: 0 }, ...packItems(none, false), doubt: null };
  // As on a page, where it is two deep.
  const deepest = MAX_DEPTH - 2;
  if (scanPage(bytes, deepest) === null) throw invalid(`the product is nested deeper than ${deepest}`);
  const value = parseJson(bytes, window);
  requireSilence(value);
  const start = bytes.findIndex((byte) => byte > SPACE);
  const length = bytes.findLastIndex((byte) => byte > SPACE) + 1 - start;
  const page = packItems(withEachMemberOnce({ bytes, spans: Uint32Array.of(start, length), values: [value] }), false);
  const [wrong] = page.rejected;
  if (wrong !== undefined) throw invalid(`the response to a lookup of ${vbid} is not a product (${wrong.reason})`);
  const found = productAt(page.items, 0).vbid;
  if (found !== vbid) throw invalid(`requested product ${vbid}, got ${found}`);
  return { envelope, ...page, doubt: null };
}

/** Validates the response to `task`, fetched here or in another process. */
export function pageOf(
  bytes: Uint8Array<ArrayBuffer>,
  { window, vbid, filling }: Pick<FetchTask, 'window' | 'vbid' | 'filling'>,
): Page {
  return vbid === undefined ? validatePage(bytes, window, filling) : validateLookup(bytes, vbid, window);
}
