import { canonicalIsbn, counterpartIsbn } from '@catchword/base/isbn';
import { type AssetRequest, IDENTIFIER_KEYS, type IdentifierKey } from './asset-fields.ts';

/**
 * The six lists of interface, section 2.1.1, without dashes. Each holds ISBNs of the length that its name says.
 * @rule 2.1-20, 2.1.1-2..5
 */
export type Identifiers = Readonly<Record<IdentifierKey, readonly string[]>>;

function fill(list: (key: IdentifierKey) => readonly string[]): Identifiers {
  return Object.fromEntries(IDENTIFIER_KEYS.map((key) => [key, list(key)])) as Record<IdentifierKey, readonly string[]>;
}

export const NO_IDENTIFIERS: Identifiers = fill(() => []);

function counterpartOf(key: IdentifierKey): IdentifierKey {
  return (key.includes('13') ? key.replace('13', '10') : key.replace('10', '13')) as IdentifierKey;
}

type Lists = ReadonlyMap<IdentifierKey, Set<string>>;

/** Adds an ISBN to the list of its length, whichever of the two it was sent for, and its other form to the other. */
function add(lists: Lists, key: IdentifierKey, text: string): void {
  const isbn = canonicalIsbn(text);
  const own = isbn.length === (key.includes('13') ? 13 : 10) ? key : counterpartOf(key);
  lists.get(own)?.add(isbn);
  const other = counterpartIsbn(isbn);
  if (other !== null) lists.get(counterpartOf(own))?.add(other);
}

/** Clears first and adds then: if one of a pair is sent as null and the other as an array, the added ISBNs stay. */
export function patchIdentifiers(held: Identifiers, patch: NonNullable<AssetRequest['identifiers']>): Identifiers {
  const lists: Lists = new Map(IDENTIFIER_KEYS.map((key) => [key, new Set(patch[key] === null ? [] : held[key])]));
  // A cleared list is refilled from the list of the other length, unless that was cleared too.
  for (const key of IDENTIFIER_KEYS) {
    if (patch[key] !== null) continue;
    for (const isbn of lists.get(counterpartOf(key)) ?? []) add(lists, counterpartOf(key), isbn);
  }
  for (const key of IDENTIFIER_KEYS) for (const isbn of patch[key] ?? []) add(lists, key, isbn);
  return fill((key) => [...(lists.get(key) ?? [])]);
}
