import { endOfString } from './json-text.ts';

/** A JSON pointer (RFC 6901) as its unescaped parts. */
export type Pointer = readonly string[];

const QUOTE = 34;
const COMMA = 44;
const COLON = 58;
const OPEN_BRACKET = 91;
const CLOSE_BRACKET = 93;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;

/** Space, tab, line feed, carriage return. */
function isSpace(code: number): boolean {
  return code === 32 || code === 9 || code === 10 || code === 13;
}

function endsScalar(code: number): boolean {
  return code === COMMA || code === CLOSE_BRACE || code === CLOSE_BRACKET || code === COLON || isSpace(code);
}

/**
 * A number's exact decimal value as text, so that `1`, `1.0` and `10e-1` are equal and rounding loses no digit: sign,
 * digits without leading or trailing zeros, power of ten.
 */
function canonicalNumber(token: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(token) ?? [];
  const digits = `${whole}${fraction}`;
  // Loops, because a regular expression for trailing zeros takes quadratic time.
  let from = 0;
  let to = digits.length;
  while (digits[from] === '0') from++;
  while (to > from && digits[to - 1] === '0') to--;
  if (from === to) return whole === '' ? token : '0';
  // BigInt, because an exponent may have any number of digits.
  const power = BigInt(exponent) - BigInt(fraction.length) + BigInt(digits.length - to);
  return `${sign}${digits.slice(from, to)}e${power}`;
}

/** The pointers that lead into the member `name`, without that first part. */
function pointersInto(pointers: readonly Pointer[], name: string): readonly Pointer[] {
  return pointers.length === 0 ? pointers : pointers.filter(([head]) => head === name).map(([, ...rest]) => rest);
}

function endsHere(pointers: readonly Pointer[]): boolean {
  return pointers.some(({ length }) => length === 0);
}

/**
 * Normalizes JSON text: without white space, with sorted keys and one spelling for each string and number. Numbers are
 * never parsed, so numbers that differ in any digit stay different. If a key repeats, the last value counts, as in
 * `JSON.parse`.
 * @param text accepted by `JSON.parse`, and nested no deeper than a page may be (the walk is recursive)
 * @param ignored members to omit
 */
export function canonicalJson(text: string, ignored: readonly Pointer[] = []): string {
  let at = 0;

  function skip(separator: number): void {
    while (isSpace(text.charCodeAt(at)) || text.charCodeAt(at) === separator) at++;
  }

  function readString(): string {
    const end = endOfString(text, at);
    const token = text.slice(at, end + 1);
    at = end + 1;
    return token.includes('\\') ? JSON.stringify(JSON.parse(token)) : token;
  }

  function readScalar(): string {
    const from = at;
    // Advances at least once, even on invalid text, so that the walk ends.
    do at++;
    while (at < text.length && !endsScalar(text.charCodeAt(at)));
    const token = text.slice(from, at);
    return /^[-\d]/.test(token) ? canonicalNumber(token) : token;
  }

  function readArray(pointers: readonly Pointer[]): string {
    const elements: string[] = [];
    at++;
    for (skip(COMMA); at < text.length && text.charCodeAt(at) !== CLOSE_BRACKET; skip(COMMA)) {
      const inner = pointersInto(pointers, String(elements.length));
      const element = readValue(inner);
      // A placeholder, so that the other elements keep their indexes.
      elements.push(endsHere(inner) ? 'ignored' : element);
    }
    at++;
    return `[${elements.join(',')}]`;
  }

  function readObject(pointers: readonly Pointer[]): string {
    const members = new Map<string, string>();
    at++;
    for (skip(COMMA); at < text.length && text.charCodeAt(at) !== CLOSE_BRACE; skip(COMMA)) {
      const key = readString();
      skip(COLON);
      const inner = pointers.length === 0 ? pointers : pointersInto(pointers, JSON.parse(key) as string);
      const value = readValue(inner);
      if (!endsHere(inner)) members.set(key, value);
    }
    at++;
    const sorted = [...members].sort(([a], [b]) => (a < b ? -1 : 1));
    return `{${sorted.map(([key, value]) => `${key}:${value}`).join(',')}}`;
  }

  function readValue(pointers: readonly Pointer[]): string {
    const code = text.charCodeAt(at);
    if (code === OPEN_BRACE) return readObject(pointers);
    if (code === OPEN_BRACKET) return readArray(pointers);
    return code === QUOTE ? readString() : readScalar();
  }

  skip(COMMA);
  return readValue(ignored);
}
