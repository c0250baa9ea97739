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
const ZERO = 48;

/** Space, tab, line feed, carriage return. */
function isSpace(code: number): boolean {
  return code === 32 || code === 9 || code === 10 || code === 13;
}

function endsScalar(code: number): boolean {
  return code === COMMA || code === CLOSE_BRACE || code === CLOSE_BRACKET || code === COLON || isSpace(code);
}

/**
 * A number's exact decimal value as text, so that `1`, `1.0` and `10e-1` are the same and no digit is lost to rounding:
 * sign, digits without zeros at either end, power of ten.
 */
function canonicalNumber(token: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(token) ?? [];
  const digits = `${whole}${fraction}`;
  // Loops, because a regular expression for zeros at the end is quadratic in the zeros before it.
  let from = 0;
  let to = digits.length;
  while (from < to && digits.charCodeAt(from) === ZERO) from++;
  while (to > from && digits.charCodeAt(to - 1) === ZERO) to--;
  if (from === to) return whole === '' ? token : '0';
  // An exponent may have any number of digits, too.
  const power = BigInt(exponent) - BigInt(fraction.length) + BigInt(digits.length - to);
  return `${sign}${digits.slice(from, to)}e${power}`;
}

/** What remains of `pointers` one step further in, at the member `name`. */
function below(pointers: readonly Pointer[], name: string): readonly Pointer[] {
  return pointers.length === 0 ? pointers : pointers.filter(([head]) => head === name).map(([, ...rest]) => rest);
}

function endsHere(pointers: readonly Pointer[]): boolean {
  return pointers.some(({ length }) => length === 0);
}

/**
 * One text for all JSON texts that say the same: without white space, keys sorted, strings and numbers each in one
 * spelling. Numbers are never parsed, so that two that differ in any digit stay different. Of a repeated key the last
 * value counts, as in `JSON.parse`.
 * @param text accepted by `JSON.parse`, and nested no deeper than a page may be: the walk is recursive
 * @param ignored members that are left out
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
    // Always moves on, whatever the text is.
    do at++;
    while (at < text.length && !endsScalar(text.charCodeAt(at)));
    const token = text.slice(from, at);
    return /^[-\d]/.test(token) ? canonicalNumber(token) : token;
  }

  function readArray(pointers: readonly Pointer[]): string {
    const elements: string[] = [];
    at++;
    for (skip(COMMA); at < text.length && text.charCodeAt(at) !== CLOSE_BRACKET; skip(COMMA)) {
      const inner = below(pointers, String(elements.length));
      const element = readValue(inner);
      // The others keep their places.
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
      const inner = pointers.length === 0 ? pointers : below(pointers, JSON.parse(key) as string);
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
