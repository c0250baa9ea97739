import { BACKSLASH, CLOSE_BRACE, CLOSE_BRACKET, COMMA, OPEN_BRACE, OPEN_BRACKET, QUOTE } from './cut-page.ts';

/* Extracts parts of JSON text without changing a byte; see cut-page.ts. The text is one that `JSON.parse` accepts. */

function endOfString(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(at - 1 - backslashes) === BACKSLASH) backslashes++;
    if (backslashes % 2 === 0) return at;
  }
  return text.length;
}

/** The texts of the elements of an array, or of the members of an object. */
export function elementsOf(text: string): string[] {
  const elements: string[] = [];
  let depth = 0;
  let from = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at);
    else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      if (depth++ === 0) from = at + 1;
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      if (--depth > 0) continue;
      const last = text.slice(from, at).trim();
      return last === '' ? elements : [...elements, last];
    } else if (code === COMMA && depth === 1) {
      elements.push(text.slice(from, at).trim());
      from = at + 1;
    }
  }
  return elements;
}

/** Maps each key of the object to the text of its value, in order. If a key repeats, the last value counts. */
export function objectMembers(text: string): Map<string, string> {
  const members = new Map<string, string>();
  for (const member of elementsOf(text)) {
    const keyEnd = endOfString(member, 0);
    const value = member.slice(member.indexOf(':', keyEnd) + 1).trim();
    members.set(JSON.parse(member.slice(0, keyEnd + 1)) as string, value);
  }
  return members;
}

/** Builds the text of an object from the texts of its values. */
export function objectText(members: ReadonlyMap<string, string>): string {
  return `{${[...members].map(([key, value]) => `${JSON.stringify(key)}:${value}`).join(',')}}`;
}

/** A string, an empty array or object, a bracket, a comma, a colon, or white space. */
const PIECE = /"[^"\\]*(?:\\.[^"\\]*)*"|[[{]\s*[\]}]|[[{\]},:]|\s+/g;

/** The same JSON with each member once: the last one, as `JSON.parse` reads it. Numbers and strings stay as they are written. */
export function withoutRepeats(text: string): string {
  const value = text.trim();
  if (value.startsWith('[')) return `[${elementsOf(value).map(withoutRepeats).join(',')}]`;
  if (!value.startsWith('{')) return value;
  return objectText(new Map([...objectMembers(value)].map(([key, member]) => [key, withoutRepeats(member)])));
}

/** Indents JSON, one member or element a line, without changing how numbers and strings are written. */
export function indentedJson(text: string): string {
  let depth = 0;
  const nextLine = (deeper = 0) => {
    depth += deeper;
    return `\n${'  '.repeat(depth)}`;
  };
  return text.replace(PIECE, (piece) => {
    if (piece === '{' || piece === '[') return `${piece}${nextLine(1)}`;
    if (piece === '}' || piece === ']') return `${nextLine(-1)}${piece}`;
    if (piece === ',') return `,${nextLine()}`;
    if (piece === ':') return ': ';
    return piece.startsWith('"') ? piece : piece.replace(/\s+/, '');
  });
}

/** Escapes in a JSON text: pairs of surrogates, halves of such pairs, and others. */
const ESCAPES = /\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F]..)|.)/g;

/** Replaces halves of surrogate pairs, at which DuckDB ends a whole query, by U+FFFD. */
export function withoutHalves(json: string): string {
  if (!/\\u[dD][89a-fA-F]/.test(json)) return json;
  return json.replace(ESCAPES, (found: string, half?: string) => (half === undefined ? found : '\\ufffd'));
}
