import { canonicalIsbn, counterpartIsbn } from '../catalog/made-isbn.ts';
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

const COUNTERPART: Readonly<Record<IdentifierKey, IdentifierKey>> = {
  e_isbn_10: 'e_isbn_13',
  e_isbn_13: 'e_isbn_10',
  print_isbn_10: 'print_isbn_13',
  print_isbn_13: 'print_isbn_10',
  vbid10_alias: 'vbid13_alias',
  vbid13_alias: 'vbid10_alias',
};

type Lists = ReadonlyMap<IdentifierKey, Set<string>>;

/** Adds an ISBN to the list of its length, whichever of the two it was sent for, and its other form to the other. */
function add(lists: Lists, key: IdentifierKey, text: string): void {
  const isbn = canonicalIsbn(text);
  const own = isbn.length === (key.includes('13') ? 13 : 10) ? key : COUNTERPART[key];
  lists.get(own)?.add(isbn);
  const other = counterpartIsbn(isbn);
  if (other !== null) lists.get(COUNTERPART[own])?.add(other);
}

/** Clears first and adds then, so that of a pair sent as null and an array, the added ISBNs stay. */
export function patchIdentifiers(held: Identifiers, patch: NonNullable<AssetRequest['identifiers']>): Identifiers {
  const lists: Lists = new Map(IDENTIFIER_KEYS.map((key) => [key, new Set(patch[key] === null ? [] : held[key])]));
  // A cleared list is refilled from the list of the other length, unless that was cleared too.
  for (const key of IDENTIFIER_KEYS) {
    if (patch[key] !== null) continue;
    for (const isbn of lists.get(COUNTERPART[key]) ?? []) add(lists, COUNTERPART[key], isbn);
  }
  for (const key of IDENTIFIER_KEYS) for (const isbn of patch[key] ?? []) add(lists, key, isbn);
  return fill((key) => [...(lists.get(key) ?? [])]);
}
