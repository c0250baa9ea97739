/*
 * Finds the items of a page in its bytes, without parsing or changing one. `JSON.parse` followed by `JSON.stringify` would
 * change how a number is written (`10.50`, 64-bit identifiers), and the mirror must be an exact copy. All bytes that have
 * a meaning in JSON are ASCII, so the text need not be decoded.
 */

const QUOTE = 34;
const COMMA = 44;
const BACKSLASH = 92;
const OPEN_BRACKET = 91;
const CLOSE_BRACKET = 93;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;
const SPACE = 32;
const ITEMS = Buffer.from('items');

/** Index of the quote that ends the string starting at `start`. */
function endOfString(bytes: Uint8Array, start: number): number {
  let at = start + 1;
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
  return at;
}

function isItems(bytes: Uint8Array, from: number, to: number): boolean {
  return to - from === ITEMS.length && ITEMS.every((byte, at) => bytes[from + at] === byte);
}

/** Adds the start and the length of what is between `from` and `to`, without the white space around it. */
function add(spans: number[], bytes: Uint8Array, from: number, to: number): void {
  let start = from;
  let end = to;
  while (start < end && (bytes[start] ?? 0) <= SPACE) start++;
  while (end > start && (bytes[end - 1] ?? 0) <= SPACE) end--;
  spans.push(start, end - start);
}

/**
 * Scans a page once, before it is parsed: checks the nesting depth and finds the elements of the top-level array `items`.
 * Never throws; for anything but JSON the spans are undefined.
 * @returns start and length of each item, in bytes; null if the page is nested deeper than `maxDepth`
 */
export function cutPage(bytes: Uint8Array, maxDepth: number): Uint32Array | null {
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
    }
  }
  return Uint32Array.from(spans);
}
