import { canonicalJson, type Pointer } from './canonical-json.ts';
import { elementsOf, objectMembers, objectText } from './json-text.ts';

export type { Pointer } from './canonical-json.ts';

/**
 * Whether two bodies have the same content. Compares the texts first, because nearly all are equal; then the normalized
 * texts, so that a source that reorders keys causes no change.
 * @param ignored fields to omit from the comparison
 */
export function sameContent(a: string, b: string, ignored: readonly Pointer[] = []): boolean {
  return a === b || canonicalJson(a, ignored) === canonicalJson(b, ignored);
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

/**
 * JSON pointers of the innermost fields that differ, with `*` for the elements of arrays of the same length.
 * @param ignored fields to omit from the comparison
 */
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
