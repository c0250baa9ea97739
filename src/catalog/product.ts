/** What full-text search knows of a product. */
export interface SearchText {
  readonly title: string;
  readonly contributors: string;
  readonly publisher: string;
  readonly identifiers: string;
}

/**
 * One catalog item (interface section 2.5), keyed by `vbid`. The other fields are read out of the body for look-ups;
 * null where the source says nothing, or says `"null"`.
 */
export interface Product {
  readonly vbid: string;
  /** The item's JSON text exactly as the source sent it, unknown fields included. */
  readonly body: string;
  readonly title: string | null;
  readonly kind: string | null;
  readonly format: string | null;
  readonly publisher: string | null;
  readonly printIsbn: string | null;
  readonly eIsbn: string | null;
  /** The source says that it is no longer distributed. */
  readonly withdrawn: boolean;
  /** Null where the item holds no words beyond what `vbid`, `printIsbn` and `eIsbn` already find. */
  readonly search: SearchText | null;
}

/** A parsed JSON object. */
export type Fields = Readonly<Record<string, unknown>>;

/** Text of a scalar. Services in the wild send numbers for identifiers, and the word "null" for null. */
export function text(value: unknown): string | null {
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' && value !== '' && value !== 'null' ? value : null;
}

/** `kind` and `publisher` come as a name or as an object that holds one (interface, section 2.2). */
export function name(value: unknown): string | null {
  if (typeof value !== 'object' || value === null) return text(value);
  const fields = value as Fields;
  return text(fields.name) ?? text(fields.value);
}

export function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

function scalars(value: unknown): string[] {
  const list = Array.isArray(value) ? value : [value];
  return list.map(text).filter((item) => item !== null);
}

function contributorNames(value: unknown): string {
  return Array.isArray(value)
    ? value
        .map(name)
        .filter((item) => item !== null)
        .join(' ')
    : '';
}

/** A product that is no longer distributed stays in the list for some days, with `distributable: false`. */
export function isWithdrawn(fields: Fields): boolean {
  return fields.distributable === false || fields.distributable === 'false';
}

/** As `isWithdrawn`, of an item's text. */
export function isWithdrawnBody(body: string): boolean {
  return isWithdrawn(JSON.parse(body) as Fields);
}

/** What the body says that has a column of its own. */
export type ProductColumns = Pick<Product, 'title' | 'kind' | 'format' | 'publisher' | 'printIsbn' | 'eIsbn'>;

/** @param fields the parsed item */
export function columnsOf(fields: Fields): ProductColumns {
  const identifiers = fieldsOf(fields.identifiers);
  return {
    title: text(fields.title),
    kind: name(fields.kind),
    format: name(fields.format),
    publisher: name(fields.publisher),
    printIsbn: text(identifiers.print_isbn_canonical),
    eIsbn: text(identifiers.eisbn_canonical),
  };
}

/**
 * @param vbid the item's key, already checked
 * @param fields the parsed item
 * @param body the text it was parsed from
 */
export function productOf(vbid: string, fields: Fields, body: string): Product {
  const columns = columnsOf(fields);
  const search = searchText(fields, fieldsOf(fields.identifiers), { vbid, ...columns });
  return { vbid, body, ...columns, withdrawn: isWithdrawn(fields), search };
}

/** Identifiers beyond those that have a column of their own. */
function otherIdentifiers(identifiers: Fields, known: readonly (string | null)[]): string {
  const others: string[] = [];
  for (const key in identifiers) {
    if (key === 'print_isbn_canonical' || key === 'eisbn_canonical') continue;
    for (const item of scalars(identifiers[key])) {
      if (!known.includes(item) && !others.includes(item)) others.push(item);
    }
  }
  return others.join(' ');
}

function searchText(
  fields: Fields,
  identifiers: Fields,
  known: Pick<Product, 'vbid' | 'title' | 'publisher' | 'printIsbn' | 'eIsbn'>,
): SearchText | null {
  const subtitle = text(fields.subtitle);
  const title = subtitle === null ? (known.title ?? '') : `${known.title ?? ''} ${subtitle}`;
  const contributors = contributorNames(fields.contributors);
  const others = otherIdentifiers(identifiers, [known.vbid, known.printIsbn, known.eIsbn]);
  if (title === '' && contributors === '' && known.publisher === null && others === '') return null;
  return { title, contributors, publisher: known.publisher ?? '', identifiers: others };
}
