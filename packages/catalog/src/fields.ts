/*
 * The fields of a product; no other file says where in an item they are. From these tables come the columns of the mirror,
 * the views of products and of their parts, the tables of sinks, the page of a product, the type and the schema
 * of an event, what the API answers, and the tables in docs/sql.md and docs/stores.
 *
 * A value of another JSON type than its field's form counts as absent: only the item's own JSON shows it. A number beyond
 * 15 digits is null in columns, because JavaScript and SQL round it in different ways; the page shows each number as sent.
 */

/**
 * - text, numeric, isbn, link: a text, or a number. Columns of ISBNs have an index
 * - name: a text, or an object with a name; names: a list of names
 * - sellable: false for `false` and `"false"` only
 * - texts: a list of texts; its column is a JSON array
 * - others have no column: events describe them
 */
export type Form =
  | ('text' | 'numeric' | 'isbn' | 'link' | 'name' | 'names' | 'sellable' | 'texts')
  | ('identifiers' | 'links' | 'variants' | 'subjects' | 'object');

interface Row {
  /** The name of a member of the item; or of a member's member, after a dot. Not deeper. */
  readonly path: string;
  readonly form: Form;
  /**
   * Only fields with a column have it. `stored`: the mirror's table `products` has the column, which takes a migration and
   * a line in store/schema.ts. `read`: views and sinks read it from the item.
   */
  readonly kept?: 'stored' | 'read';
  /** The name of the column; default: the path. */
  readonly column?: string;
  /** The name on the page of a product; the page shows only fields that have one. */
  readonly label?: string;
  /** The column of the full-text index that has its words. */
  readonly words?: 'title' | 'contributors' | 'publisher';
  /** A sentence for documents and schemas. */
  readonly about: string;
}

/**
 * In the order of the page, and of the columns: stored ones first. Programs rely on the order of columns, so a new row with
 * a column comes last among the rows that have one. A member's member has a row for its member.
 */
// biome-ignore format: a row is a line.
export const ROWS = [
  { path: 'title', form: 'text', kept: 'stored', label: 'Title', words: 'title', about: 'The title.' },
  { path: 'distributable', form: 'sellable', kept: 'read', about: 'False if the product is withdrawn: none of its variants may be sold. Absent: not withdrawn.' },
  { path: 'subtitle', form: 'text', kept: 'read', label: 'Subtitle', words: 'title', about: 'The subtitle.' },
  { path: 'kind', form: 'name', kept: 'stored', label: 'Kind', about: 'A name such as `book`, or an object with a name.' },
  { path: 'format', form: 'name', kept: 'stored', label: 'Format', about: 'A name such as `ePub`, or an object with a name.' },
  { path: 'publisher', form: 'name', kept: 'stored', label: 'Publisher', words: 'publisher', about: 'A name, or an object with a name.' },
  { path: 'metadata.imprint_name', form: 'text', label: 'Imprint', about: 'The imprint.' },
  { path: 'identifiers', form: 'identifiers', about: 'ISBNs and other numbers, by their names.' },
  { path: 'identifiers.print_isbn_canonical', form: 'isbn', kept: 'stored', column: 'print_isbn', label: 'Print ISBN', about: 'The ISBN of the printed book.' },
  { path: 'identifiers.eisbn_canonical', form: 'isbn', kept: 'stored', column: 'e_isbn', label: 'E-book ISBN', about: 'The ISBN of the electronic book.' },
  { path: 'contributors', form: 'names', kept: 'read', label: 'Contributors', words: 'contributors', about: 'Authors, editors and others, in the order of the source.' },
  { path: 'language', form: 'text', kept: 'read', label: 'Language', about: 'A code or a name.' },
  { path: 'edition', form: 'numeric', kept: 'read', label: 'Edition', about: 'The edition: a number or a text.' },
  { path: 'created', form: 'text', about: 'When the source created it, usually an ISO 8601 time.' },
  { path: 'resource_links', form: 'links', about: 'Addresses of the cover and of other resources.' },
  { path: 'resource_links.cover_image', form: 'link', kept: 'read', column: 'cover_url', label: 'Cover', about: 'The address of the cover.' },
  { path: 'on_sale_date', form: 'text', kept: 'read', label: 'On sale from', about: 'From when it may be sold, usually an ISO 8601 date.' },
  { path: 'off_sale_date', form: 'text', kept: 'read', label: 'On sale until', about: 'Until when it may be sold, usually an ISO 8601 date.' },
  { path: 'print_restrictions', form: 'numeric', about: 'Pages that a reader may print; -1: unlimited.' },
  { path: 'copy_restrictions', form: 'numeric', about: 'Pages that a reader may copy; -1: unlimited.' },
  { path: 'variants', form: 'variants', about: 'What is sold, with its prices.' },
  { path: 'sales_rights', form: 'texts', kept: 'read', about: 'Countries where it may be sold (ISO 3166), or `WORLD`, `ROW`.' },
  { path: 'exclude_sales_rights', form: 'texts', kept: 'read', about: 'Countries where it may not be sold.' },
  { path: 'subjects', form: 'subjects', about: 'Subjects, if `include_details` asks for them.' },
  { path: 'metadata', form: 'object', about: 'Description and dates, if `include_details` asks for them.' },
  { path: 'metadata.page_count', form: 'numeric', label: 'Pages', about: 'The number of pages.' },
  { path: 'metadata.description', form: 'text', label: 'Description', about: 'The description.' },
] as const satisfies readonly Row[];

/** A price's columns, with the object that has the member: the price itself, or the variant that it is of. A new one comes last. */
// biome-ignore format: a row is a line.
export const PRICE_FIELDS = [
  { column: 'sku', member: 'sku', of: 'variant', form: 'text', label: 'SKU', about: 'What is sold.' },
  { column: 'type', member: 'type', of: 'price', form: 'text', label: 'Type', about: 'Such as `digital_list_price`.' },
  { column: 'duration', member: 'duration', of: 'variant', form: 'text', label: 'Duration', about: 'A number of days, or `perpetual`.' },
  { column: 'currency', member: 'currency', of: 'price', form: 'text', label: 'Currency', about: 'ISO 4217.' },
  { column: 'value', member: 'value', of: 'price', form: 'number', label: 'Price', about: 'A number, also if the source writes it as a text.' },
  { column: 'variant_type', member: 'type', of: 'variant', form: 'text', label: 'Variant', about: 'Such as `single` or `rental`.' },
  { column: 'variant_distributable', member: 'distributable', of: 'variant', form: 'sellable', label: 'Distributable', about: 'False if this variant may not be sold, although others of the product may. Absent: it may.' },
] as const;

/** What a product has many of: each has a view, and a table of its own in sinks, with these columns after `vbid`. */
// biome-ignore format: a row is a line.
export const PARTS = {
  prices: PRICE_FIELDS,
  contributors: [
    { column: 'position', form: 'whole', about: 'Its place in the list of the source, from 1 on.' },
    { column: 'name', form: 'name', about: 'The name. A contributor without one has no row.' },
    { column: 'type', form: 'text', about: 'Such as `author`.' },
  ],
  identifiers: [
    { column: 'form', form: 'text', about: 'The name that the source gives it, such as `e_isbn_13`.' },
    { column: 'value', form: 'text', about: 'The identifier. A list of them has a row for each.' },
  ],
} as const;
export type Part = keyof typeof PARTS;
export const PART_NAMES = Object.keys(PARTS) as Part[];

/** Members that other code than the table's rows has to find. */
export const MEMBER = {
  withdrawn: 'distributable',
  contributors: 'contributors',
  identifiers: 'identifiers',
  variants: 'variants',
  prices: 'prices',
} as const;

/** Columns of the lists of products. */
const LISTED = ['title', 'publisher', 'format', 'print_isbn', 'e_isbn'] as const;

type RowOf = (typeof ROWS)[number];
/** Describes the item's members: their names, with what `Sent` says of their forms. */
export type MembersAs<Sent extends Record<Form, unknown>> = {
  readonly [R in RowOf as R['path'] extends `${string}.${string}` ? never : R['path']]: Sent[R['form']];
};
/** The same for the members of the member that has the form `F`. */
export type PartsAs<F extends Form, Sent extends Record<Form, unknown>> = {
  readonly [R in RowOf as R['path'] extends `${MemberOf<F>}.${infer N}` ? N : never]?: Sent[R['form']];
};
type MemberOf<F extends Form> = Extract<RowOf, { readonly form: F }>['path'];

type Camel<S> = S extends `${infer A}_${infer B}` ? `${A}${Capitalize<Camel<B>>}` : S;
type ColumnOf<R> = R extends { readonly column: infer C } ? C : R extends { readonly path: infer P } ? P : never;
type Texts<C extends PropertyKey> = { readonly [N in C]: string | null };
type Named<T> = { readonly [N in keyof T as Camel<N>]: T[N] };
/** The stored columns of a product, and those of lists. */
export type StoredColumns = Texts<ColumnOf<Extract<RowOf, { readonly kept: 'stored' }>>>;
export type SummaryColumns = Texts<(typeof LISTED)[number]>;
/** The same by their names in JavaScript. */
export type Stored = Named<StoredColumns>;
export type Summary = Named<SummaryColumns>;

export interface Field extends Row {
  /** The parts of the path. */
  readonly key: string;
  readonly inner: string | undefined;
  readonly column: string;
  /** The name of the column in JavaScript. */
  readonly name: string;
}

/** @returns the fields of a table such as `ROWS` */
export function fieldsFrom(rows: readonly Row[]) {
  const all = rows.map((row): Field => {
    const { path, column = path } = row;
    const [key = '', inner] = path.split('.');
    const name = column.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
    return { ...row, key, inner, column, name };
  });
  const STORED = all.filter(({ kept }) => kept === 'stored');
  const READ = all.filter(({ kept }) => kept === 'read');
  return {
    STORED,
    READ,
    COLUMNS: [...STORED, ...READ],
    MEMBERS: all.filter(({ inner }) => inner === undefined),
    SHOWN: all.filter(({ label }) => label !== undefined),
    SUMMARY: LISTED.flatMap((column) => STORED.filter((field) => field.column === column)),
    SEARCHED: all.filter(({ words }) => words !== undefined),
  };
}

export const { STORED, READ, COLUMNS, MEMBERS, SHOWN, SUMMARY, SEARCHED } = fieldsFrom(ROWS);
