import { type Fields, fieldsOf, fieldText, isWithdrawn, named, storedOf, textOf } from './field-values.ts';
import { MEMBER, SEARCHED, STORED, type Stored } from './fields.ts';

/** The words that full-text search finds a product by. @rule 2.5-3 */
export interface SearchText {
  readonly title: string;
  readonly contributors: string;
  readonly publisher: string;
  readonly identifiers: string;
}

/** Where ISBNs are in `STORED`, and their names among the identifiers. */
const ISBNS = STORED.flatMap(({ form }, at) => (form === 'isbn' ? [at] : []));
const ISBN_NAMES = ISBNS.map((at) => STORED[at]?.inner);

/** A catalog item (interface, section 2.5), keyed by `vbid`. */
export interface Product extends Stored {
  readonly vbid: string;
  /** The item's JSON text exactly as the source sent it, unknown fields included. */
  readonly body: string;
  /** The source marks it as `distributable: false`. */
  readonly withdrawn: boolean;
  /** Null if it has no words beyond `vbid` and the ISBNs of its columns. */
  readonly search: SearchText | null;
}

/** @param vbid the key of the item, already checked */
export function productOf(vbid: string, fields: Fields, body: string): Product {
  const columns = storedOf(fields);
  return { vbid, body, ...named(columns), withdrawn: isWithdrawn(fields), search: searchText(fields, vbid, columns) };
}

/** Identifiers that have no column of their own. Most items have none, so this makes no objects for them. */
function otherIdentifiers(fields: Fields, vbid: string, columns: readonly (string | null)[]): string {
  const identifiers = fieldsOf(fields[MEMBER.identifiers]);
  const found: string[] = [];
  for (const name in identifiers) {
    if (ISBN_NAMES.includes(name)) continue;
    for (const value of [identifiers[name]].flat()) {
      const text = textOf(value);
      const isKnown = text === vbid || ISBNS.some((at) => columns[at] === text);
      if (text !== null && !isKnown && !found.includes(text)) found.push(text);
    }
  }
  return found.join(' ');
}

/** @param columns the values of `STORED` */
export function searchText(fields: Fields, vbid: string, columns: readonly (string | null)[]): SearchText | null {
  const identifiers = otherIdentifiers(fields, vbid, columns);
  const texts = { title: '', contributors: '', publisher: '', identifiers };
  let hasWords = identifiers !== '';
  for (const field of SEARCHED) {
    const text = fieldText(fields, field, ' ');
    if (text === null || field.words === undefined) continue;
    hasWords = true;
    const before = texts[field.words];
    texts[field.words] = before === '' ? text : `${before} ${text}`;
  }
  return hasWords ? texts : null;
}
