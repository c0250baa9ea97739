import { objectMembers, objectText } from './json-text.ts';

/** Numbers that `JSON.parse` may round: two of them can be different and yet parse to the same value. */
const LONG_NUMBER = /[:,[]\s*-?\d[\d.eE+-]{15,}/;

/** A JSON pointer (RFC 6901) as its unescaped parts. */
export type Pointer = readonly string[];

/** The same value for the same content, whatever the order of keys. */
function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonical);
  if (typeof value !== 'object' || value === null) return value;
  const sorted = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  // Pairs inside an object: as a bare list they would be the same as an array of pairs.
  return { pairs: sorted.map(([key, member]) => [key, canonical(member)]) };
}

function without(value: unknown, pointer: Pointer): void {
  const [head, ...rest] = pointer;
  if (typeof value !== 'object' || value === null || head === undefined) return;
  const holder = value as Record<string, unknown>;
  if (rest.length === 0) delete holder[head];
  else without(holder[head], rest);
}

function comparable(body: string, ignored: readonly Pointer[]): string {
  const value: unknown = JSON.parse(body);
  for (const pointer of ignored) without(value, pointer);
  return JSON.stringify(canonical(value));
}

/**
 * Whether two bodies say the same. Text first, as nearly all are equal; then with keys sorted, so that a source that
 * reorders keys causes no change.
 * @param ignored fields left out of the comparison
 */
export function sameContent(a: string, b: string, ignored: readonly Pointer[] = []): boolean {
  if (a === b) return true;
  if (ignored.length === 0 && (LONG_NUMBER.test(a) || LONG_NUMBER.test(b))) {
    // Whitespace apart, text that cannot be compared by value without rounding counts as changed.
    return false;
  }
  return comparable(a, ignored) === comparable(b, ignored);
}

/** What changed between two versions, enough to go back from the newer to the older. */
export interface Difference {
  /** JSON object text: previous values of the top-level fields that changed or vanished. */
  readonly before: string;
  /** Top-level fields that the older version did not have. */
  readonly added: readonly string[];
}

export function difference(older: string, newer: string): Difference {
  const was = objectMembers(older);
  const is = objectMembers(newer);
  const before = new Map<string, string>();
  for (const [key, value] of was) {
    const now = is.get(key);
    if (now === undefined || !sameContent(now, value)) before.set(key, value);
  }
  return { before: objectText(before), added: [...is.keys()].filter((key) => !was.has(key)) };
}

/** The older version, from the newer one and what changed. */
export function revert(newer: string, change: Difference): string {
  const members = objectMembers(newer);
  for (const key of change.added) members.delete(key);
  for (const [key, value] of objectMembers(change.before)) members.set(key, value);
  return objectText(members);
}

/** JSON pointers of the top-level fields that changed. */
export function changedPointers(change: Difference): string[] {
  return [...objectMembers(change.before).keys(), ...change.added].map(
    (key) => `/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`,
  );
}
