/*
 * Finds the items of a page in its bytes, without parsing or changing one. `JSON.parse` followed by `JSON.stringify` would
 * change how a number is written (`10.50`, 64-bit identifiers), and the mirror must be an exact copy. All bytes that have
 * a meaning in JSON are ASCII, so the text need not be decoded.
 */

export const QUOTE = 34;
const COLON = 58;
export const COMMA = 44;
export const BACKSLASH = 92;
export const OPEN_BRACKET = 91;
export const CLOSE_BRACKET = 93;
export const OPEN_BRACE = 123;
export const CLOSE_BRACE = 125;
const ITEMS = Buffer.from('items');
/** Length of `items` with each character as `\uXXXX`. */
const MAX_ESCAPED = 6 * ITEMS.length;

/** Index of the quote that ends the string starting at `start`. */
function endOfString(bytes: Uint8Array, start: number): number {
  let at = start + 1;
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
  return at;
}

/** @param from, to of a key, without quotes */
function isItems(bytes: Uint8Array, from: number, to: number): boolean {
  if (to - from === ITEMS.length) return ITEMS.every((byte, at) => bytes[from + at] === byte);
  const isEscaped = to - from <= MAX_ESCAPED && bytes.subarray(from, to).includes(BACKSLASH);
  return isEscaped && parsed(bytes.subarray(from - 1, to + 1)) === 'items';
}

/** The value of JSON; null if it is none. */
export function parsed(json: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(json.buffer, json.byteOffset, json.length).toString('utf8'));
  } catch {
    return null;
  }
}

/** Index after the object that starts at `start`; the end of the bytes if it does not end. */
export function endOfObject(bytes: Uint8Array, start: number): number {
  let depth = 0;
  for (let at = start; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) at = endOfString(bytes, at);
    else if (byte === OPEN_BRACE) depth++;
    else if (byte === CLOSE_BRACE && --depth === 0) return at + 1;
  }
  return bytes.length;
}

function isSpace(byte: number | undefined): boolean {
  return byte === 32 || byte === 10 || byte === 13 || byte === 9;
}

/** Index of the first byte from `start` on that is not white space of JSON. */
export function skipSpace(bytes: Uint8Array, start: number): number {
  let at = start;
  while (isSpace(bytes[at])) at++;
  return at;
}

/** Adds the start and the length of what is between `from` and `to`, without the white space around it. */
function add(spans: number[], bytes: Uint8Array, from: number, to: number): void {
  const start = Math.min(skipSpace(bytes, from), to);
  let end = to;
  while (end > start && isSpace(bytes[end - 1])) end--;
  spans.push(start, end - start);
}

/** The number of members in all objects of a JSON text, as they are written. */
export function membersWritten(bytes: Uint8Array): number {
  let members = 0;
  for (let at = 0; at < bytes.length; at++) {
    if (bytes[at] === QUOTE) at = endOfString(bytes, at);
    else if (bytes[at] === COLON) members++;
  }
  return members;
}

/** The number of members in all objects of a parsed value: fewer than are written if an object has a member twice. */
export function membersParsed(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  let members = 0;
  if (Array.isArray(value)) for (const one of value) members += membersParsed(one);
  else for (const name in value) members += 1 + membersParsed((value as Record<string, unknown>)[name]);
  return members;
}

/**
 * Scans a page once, before it is parsed: checks the nesting depth and finds the elements of the top-level array `items`.
 * Never throws; for anything but JSON the spans are undefined.
 * @returns start and length of each item, in bytes, and how many members the items have as they are written; null if the
 *   page is nested deeper than `maxDepth`
 */
export function scanPage(bytes: Uint8Array, maxDepth: number) {
  let members = 0;
  let spans: number[] = [];
  let depth = 0;
  let isKeyItems = false;
  let from = -1;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      const end = endOfString(bytes, at);
      if (depth === 1) isKeyItems = isItems(bytes, at + 1, end);
      at = end;
    } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      if (++depth > maxDepth) return null;
      if (depth === 2 && byte === OPEN_BRACKET && isKeyItems) {
        // If the member repeats, the last one counts, as in JSON.parse.
        spans = [];
        members = 0;
        from = at + 1;
      }
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      if (--depth === 1 && from !== -1) {
        add(spans, bytes, from, at);
        // An empty array.
        if (spans.length === 2 && spans[1] === 0) spans = [];
        from = -1;
      }
    } else if (byte === COMMA && depth === 2 && from !== -1) {
      add(spans, bytes, from, at);
      from = at + 1;
    } else if (byte === COLON && from !== -1) members++;
  }
  return { spans: Uint32Array.from(spans), members };
}
