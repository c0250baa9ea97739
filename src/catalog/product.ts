/**
 * The words that full-text search finds a product by.
 * @rule 2.5-3
 */
export interface SearchText {
  readonly title: string;
  readonly contributors: string;
  readonly publisher: string;
  readonly identifiers: string;
}

/** The fields that have a column of their own. */
type Columns = Readonly<ReturnType<typeof columnsOf>>;

/** A catalog item (interface, section 2.5), keyed by `vbid`. */
export interface Product extends Columns {
  readonly vbid: string;
  /** The item's JSON text exactly as the source sent it, unknown fields included. */
  readonly body: string;
  /** The source marks it as `distributable: false`. */
  readonly withdrawn: boolean;
  /** Null if it has no words beyond `vbid`, `printIsbn` and `eIsbn`. */
  readonly search: SearchText | null;
}

/** A parsed JSON object. */
export type Fields = Readonly<Record<string, unknown>>;

/** A scalar as text; null if there is none. Some services send numbers as identifiers and the word "null" for null. */
export function textOf(value: unknown): string | null {
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' && value !== '' && value !== 'null' ? value : null;
}

/** The name in a field that is either a name or an object with a name, such as `publisher` (interface, section 2.2). */
export function nameOf(value: unknown): string | null {
  const { name, value: named } = fieldsOf(value);
  return textOf(value) ?? textOf(name) ?? textOf(named);
}

export function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

/** The elements of an array; none for any other value. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The names in a list such as `contributors`. */
export function namesOf(value: unknown): string[] {
  return listOf(value)
    .map(nameOf)
    .filter((item) => item !== null);
}

/** Whether the product is withdrawn: sources list it for some days with `distributable: false`, then omit it. */
export function isWithdrawn(fields: Fields): boolean {
  return fields.distributable === false || fields.distributable === 'false';
}

/** As `isWithdrawn`, for an item's JSON text. */
export function isWithdrawnBody(body: string): boolean {
  return isWithdrawn(JSON.parse(body) as Fields);
}

/** The fields that have a column of their own; null if absent, null or `"null"`. */
export function columnsOf(fields: Fields) {
  const identifiers = fieldsOf(fields.identifiers);
  return {
    title: textOf(fields.title),
    kind: nameOf(fields.kind),
    format: nameOf(fields.format),
    publisher: nameOf(fields.publisher),
    printIsbn: textOf(identifiers.print_isbn_canonical),
    eIsbn: textOf(identifiers.eisbn_canonical),
  };
}

/** @param vbid the key of the item, already checked */
export function productOf(vbid: string, fields: Fields, body: string): Product {
  const columns = columnsOf(fields);
  const search = searchText(fields, vbid, columns);
  return { vbid, body, ...columns, withdrawn: isWithdrawn(fields), search };
}

/** Identifiers that have no column of their own. Most items have none, so this makes no objects for them. */
function otherIdentifiers(fields: Fields, known: readonly (string | null)[]): string {
  const identifiers = fieldsOf(fields.identifiers);
  const found: string[] = [];
  for (const name in identifiers) {
    if (name === 'print_isbn_canonical' || name === 'eisbn_canonical') continue;
    for (const value of [identifiers[name]].flat()) {
      const text = textOf(value);
      if (text !== null && !known.includes(text) && !found.includes(text)) found.push(text);
    }
  }
  return found.join(' ');
}

function searchText(fields: Fields, vbid: string, columns: Columns): SearchText | null {
  const subtitle = textOf(fields.subtitle);
  const { publisher } = columns;
  const title = subtitle === null ? (columns.title ?? '') : `${columns.title ?? ''} ${subtitle}`;
  const contributors = fields.contributors === undefined ? '' : namesOf(fields.contributors).join(' ');
  const identifiers = otherIdentifiers(fields, [vbid, columns.printIsbn, columns.eIsbn]);
  if (title === '' && contributors === '' && publisher === null && identifiers === '') return null;
  return { title, contributors, publisher: publisher ?? '', identifiers };
}
