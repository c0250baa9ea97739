import { elementsOf, objectMembers } from './json-text.ts';

/** A JSON pointer (RFC 6901) as its unescaped parts. A part `*` stands for every element of an array, or every member. */
export type Pointer = readonly string[];

const ANY = '*';

/** A number's exact decimal value, without rounding: sign, digits without leading or trailing zeros, power of ten. */
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
  return pointers.length === 0
    ? pointers
    : pointers.filter(([head]) => head === name || head === ANY).map(([, ...rest]) => rest);
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
  const value = text.trim();
  if (value.startsWith('{')) {
    const members: (readonly [string, string])[] = [];
    for (const [key, member] of objectMembers(value)) {
      const inner = pointersInto(ignored, key);
      if (!endsHere(inner)) members.push([key, canonicalJson(member, inner)]);
    }
    members.sort(([a], [b]) => (a < b ? -1 : 1));
    return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${member}`).join(',')}}`;
  }
  if (value.startsWith('[')) {
    // As of an object whose members are all omitted: how many there are does not count either.
    if (ignored.some(([head, ...rest]) => head === ANY && rest.length === 0)) return '[]';
    const elements = elementsOf(value).map((element, at) => {
      const inner = pointersInto(ignored, String(at));
      // A placeholder, so that the other elements keep their indexes.
      return endsHere(inner) ? 'ignored' : canonicalJson(element, inner);
    });
    return `[${elements.join(',')}]`;
  }
  if (value.startsWith('"')) return value.includes('\\') ? JSON.stringify(JSON.parse(value)) : value;
  return /^[-\d]/.test(value) ? canonicalNumber(value) : value;
}
