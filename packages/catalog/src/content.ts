import { createHash } from 'node:crypto';
import { elementsOf, objectMembers, objectText } from './json-text.ts';

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

/**
 * Whether two bodies have the same content. Compares the texts first, because nearly all are equal; then the normalized
 * texts, so that a source that reorders keys causes no change.
 */
export function sameContent(a: string, b: string, ignored: readonly Pointer[] = []): boolean {
  return a === b || canonicalJson(a, ignored) === canonicalJson(b, ignored);
}

/** A number from 1 to 2^32 that is the same for texts with the same content. @param ignored members to omit */
export function contentDigest(text: string, ignored: readonly Pointer[]): number {
  return 1 + createHash('sha256').update(canonicalJson(text, ignored)).digest().readUInt32BE();
}

/** The difference between two versions; the older one can be restored from the newer one and this. */
export interface Difference {
  /** JSON object text: previous values of the top-level fields that changed or were deleted. */
  readonly before: string;
  /** Top-level fields that only the newer version has. */
  readonly added: readonly string[];
}

/** Empty if, and only if, the two have the same content. */
export function difference(older: string, newer: string): Difference {
  if (older === newer) return { before: '{}', added: [] };
  const was = objectMembers(older);
  const is = objectMembers(newer);
  const before = new Map<string, string>();
  for (const [key, value] of was) {
    const now = is.get(key);
    if (now === undefined || !sameContent(now, value)) before.set(key, value);
  }
  return { before: objectText(before), added: [...is.keys()].filter((key) => !was.has(key)) };
}

export function isEmpty({ before, added }: Difference): boolean {
  return before === '{}' && added.length === 0;
}

/** Turns the members of the newer version into those of the older one. */
export function revertMembers(members: Map<string, string>, { before, added }: Difference): void {
  for (const key of added) members.delete(key);
  for (const [key, value] of objectMembers(before)) members.set(key, value);
}

/** Restores the older version from the newer one and their difference. */
export function revert(newer: string, difference: Difference): string {
  const members = objectMembers(newer);
  revertMembers(members, difference);
  return objectText(members);
}

function escaped(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1');
}

/** JSON pointers of the top-level fields that changed. */
export function changedPointers({ before, added }: Difference): string[] {
  return [...objectMembers(before).keys(), ...added].map((key) => `/${escaped(key)}`);
}

/** JSON pointers of the innermost fields that differ, with `*` for the elements of arrays of the same length. */
export function changedFields(older: string, newer: string, ignored: readonly Pointer[]): ReadonlySet<string> {
  const found = new Set<string>();
  function compare(was: string, is: string, at: string): void {
    if (was === is) return;
    if (was.startsWith('{') && is.startsWith('{')) {
      const [before, now] = [objectMembers(was), objectMembers(is)];
      for (const key of new Set([...before.keys(), ...now.keys()])) {
        compare(before.get(key) ?? '', now.get(key) ?? '', `${at}/${escaped(key)}`);
      }
      return;
    }
    const [before = [], now = []] = [was, is].map((text) => (text.startsWith('[') ? elementsOf(text) : []));
    if (before.length === 0 || before.length !== now.length) found.add(at);
    else for (const [index, element] of before.entries()) compare(element, now[index] ?? '', `${at}/*`);
  }
  compare(canonicalJson(older, ignored), canonicalJson(newer, ignored), '');
  return found;
}
