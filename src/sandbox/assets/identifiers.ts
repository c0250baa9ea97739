import { canonicalIsbn, counterpartIsbn } from '../catalog/isbn.ts';
import { type AssetRequest, IDENTIFIER_KEYS, type IdentifierKey } from './fields.ts';

/** The six lists of interface, section 2.1.1, without dashes; each of the length that its name says. */
export type Identifiers = Readonly<Record<IdentifierKey, readonly string[]>>;

export const NO_IDENTIFIERS: Identifiers = {
  e_isbn_10: [],
  e_isbn_13: [],
  print_isbn_10: [],
  print_isbn_13: [],
  vbid10_alias: [],
  vbid13_alias: [],
};

const COUNTERPART: Readonly<Record<IdentifierKey, IdentifierKey>> = {
  e_isbn_10: 'e_isbn_13',
  e_isbn_13: 'e_isbn_10',
  print_isbn_10: 'print_isbn_13',
  print_isbn_13: 'print_isbn_10',
  vbid10_alias: 'vbid13_alias',
  vbid13_alias: 'vbid10_alias',
};

/** Adds an ISBN to the list of its length, whichever of the two it was sent for, and its other form to the other. */
function add(lists: Map<IdentifierKey, Set<string>>, key: IdentifierKey, text: string): void {
  const isbn = canonicalIsbn(text);
  const fits = isbn.length === (key.includes('13') ? 13 : 10);
  const own = fits ? key : COUNTERPART[key];
  lists.get(own)?.add(isbn);
  const other = counterpartIsbn(isbn);
  if (other !== null) lists.get(COUNTERPART[own])?.add(other);
}

/** Takes all away, then fills in again what follows from the list of the other length. */
function clear(lists: Map<IdentifierKey, Set<string>>, key: IdentifierKey): void {
  const refilled = [...(lists.get(COUNTERPART[key]) ?? [])].flatMap((isbn) => counterpartIsbn(isbn) ?? []);
  lists.set(key, new Set(refilled));
}

/** What is first cleared, then added to: so that of a pair sent as null and an array, the array is not refilled away. */
export function patchIdentifiers(held: Identifiers, patch: NonNullable<AssetRequest['identifiers']>): Identifiers {
  const lists = new Map(IDENTIFIER_KEYS.map((key) => [key, new Set(held[key])]));
  const cleared = IDENTIFIER_KEYS.filter((key) => patch[key] === null);
  // Both of a pair sent as null: neither is left to refill the other from.
  for (const key of cleared) if (cleared.includes(COUNTERPART[key])) lists.set(key, new Set());
  for (const key of cleared) clear(lists, key);
  for (const key of IDENTIFIER_KEYS) for (const isbn of patch[key] ?? []) add(lists, key, isbn);
  const list = (key: IdentifierKey) => [...(lists.get(key) ?? [])];
  return {
    e_isbn_10: list('e_isbn_10'),
    e_isbn_13: list('e_isbn_13'),
    print_isbn_10: list('print_isbn_10'),
    print_isbn_13: list('print_isbn_13'),
    vbid10_alias: list('vbid10_alias'),
    vbid13_alias: list('vbid13_alias'),
  };
}
