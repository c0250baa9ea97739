import { canonicalJson, type Pointer } from './canonical-json.ts';
import { objectMembers, objectText } from './json-text.ts';

export type { Pointer } from './canonical-json.ts';

/**
 * Whether two bodies say the same. Compares the texts first, because nearly all are equal; then with keys sorted, so that
 * a source that reorders keys causes no change. Numbers are compared by their digits, never by what `JSON.parse` rounds
 * them to.
 * @param ignored fields left out of the comparison
 */
export function sameContent(a: string, b: string, ignored: readonly Pointer[] = []): boolean {
  return a === b || canonicalJson(a, ignored) === canonicalJson(b, ignored);
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
