/**
 * Extracts parts of JSON text without changing a byte. `JSON.parse` followed by `JSON.stringify` would change how a
 * number is written (`10.50`, 64-bit identifiers), and the mirror must be an exact copy.
 *
 * All functions expect text that `JSON.parse` accepts; for other text the result is undefined, but they never throw.
 */

const QUOTE = 34;
const BACKSLASH = 92;
const OPEN_BRACE = 123;
const OPEN_BRACKET = 91;
const CLOSE_BRACE = 125;
const CLOSE_BRACKET = 93;
const COMMA = 44;
const COLON = 58;

/** Characters of white space within which an empty array or object is recognized. */
const MAX_SPACE = 1_000;

/** Index of the quote that ends the string starting at `start`. */
export function endOfString(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(at - 1 - backslashes) === BACKSLASH) backslashes++;
    if (backslashes % 2 === 0) return at;
  }
  return text.length;
}

/** Calls `visit` with the bounds of each top-level element of the array or object at `start`. */
function eachElement(text: string, start: number, visit: (from: number, to: number) => void): number {
  let depth = 0;
  let from = start + 1;
  for (let at = start; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at);
    else if (code === OPEN_BRACE || code === OPEN_BRACKET) depth++;
    else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      if (--depth > 0) continue;
      if (text.slice(from, at).trim() !== '') visit(from, at);
      return at;
    } else if (code === COMMA && depth === 1) {
      visit(from, at);
      from = at + 1;
    }
  }
  return text.length;
}

/**
 * Maps each key of the object to the text of its value, in order. If a key repeats, the last value counts, as in
 * `JSON.parse`.
 */
export function objectMembers(text: string): Map<string, string> {
  const members = new Map<string, string>();
  eachElement(text, text.indexOf('{'), (from, to) => {
    const keyStart = text.indexOf('"', from);
    const keyEnd = endOfString(text, keyStart);
    let at = keyEnd + 1;
    while (text.charCodeAt(at) !== COLON) at++;
    members.set(JSON.parse(text.slice(keyStart, keyEnd + 1)), text.slice(at + 1, to).trim());
  });
  return members;
}

/** Builds the text of an object from the texts of its values. */
export function objectText(members: ReadonlyMap<string, string>): string {
  return `{${[...members].map(([key, value]) => `${JSON.stringify(key)}:${value}`).join(',')}}`;
}

/** Indents JSON, one member or element a line, without changing how numbers and strings are written. */
export function indentedJson(text: string): string {
  let out = '';
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    const next = `\n${'  '.repeat(depth)}`;
    if (code === QUOTE) {
      const end = endOfString(text, at);
      out += text.slice(at, end + 1);
      at = end;
    } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      const close = /^\s*[}\]]/.exec(text.slice(at + 1, at + 1 + MAX_SPACE))?.[0];
      out += close === undefined ? `${text[at]}${next}  ` : `${text[at]}${close.trim()}`;
      if (close === undefined) depth++;
      else at += close.length;
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      depth = Math.max(0, depth - 1);
      out += `\n${'  '.repeat(depth)}${text[at]}`;
    } else if (code === COMMA) out += `,${next}`;
    else if (code === COLON) out += ': ';
    else if (code > 32) out += text[at];
  }
  return out;
}

/**
 * Scans a page's text once, before it is parsed: checks the nesting depth and finds the elements of the top-level array
 * `items`.
 * @returns the text of each item; null if the page is nested deeper than `maxDepth`
 */
export function cutPage(text: string, maxDepth: number): string[] | null {
  let items: string[] = [];
  let depth = 0;
  let key = '';
  let from = -1;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      const end = endOfString(text, at);
      if (depth === 1) key = text.slice(at + 1, end);
      at = end;
    } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      if (++depth > maxDepth) return null;
      if (depth === 2 && code === OPEN_BRACKET && key === 'items') {
        // If the member repeats, the last one counts, as in JSON.parse.
        items = [];
        from = at + 1;
      }
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      if (--depth === 1 && from !== -1) {
        if (text.slice(from, at).trim() !== '') items.push(text.slice(from, at).trim());
        from = -1;
      }
    } else if (code === COMMA && depth === 2 && from !== -1) {
      items.push(text.slice(from, at).trim());
      from = at + 1;
    }
  }
  return items;
}
