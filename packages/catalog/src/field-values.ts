import { COLUMNS, type Field, MEMBER, type Part, PRICE_FIELDS, STORED, type Stored } from './fields.ts';

/* Reads the fields of a parsed item. The views read the same from its text: see store/product-views.ts. */

/** A parsed JSON object. */
export type Fields = Readonly<Record<string, unknown>>;

/** Null for a number that SQL would write in another way: beyond 15 digits, or with an exponent. */
function numberText(number: number): string | null {
  const size = Math.abs(number);
  const isShort = size >= 1e-4 && size < 1e15 && Number(number.toPrecision(15)) === number;
  return isShort || size === 0 ? String(number) : null;
}

/** A scalar as text; null if there is none. Some services send numbers as identifiers and the word "null" for null. */
export function textOf(value: unknown): string | null {
  if (typeof value === 'string') return value !== '' && value !== 'null' ? value : null;
  return typeof value === 'number' ? numberText(value) : null;
}

export function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

/** The elements of an array; none for any other value. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The name in a field that is either a name or an object with a name, such as `publisher` (interface, section 2.2). */
export function nameOf(value: unknown): string | null {
  const { name, value: named } = fieldsOf(value);
  return textOf(value) ?? textOf(name) ?? textOf(named);
}

function allOf(value: unknown, read: typeof textOf): string[] {
  return listOf(value)
    .map(read)
    .filter((item) => item !== null);
}

/** Sources write it for products, which they list for some days before they omit them, and for variants. */
function isRefused(distributable: unknown): boolean {
  return distributable === false || distributable === 'false';
}

export function isWithdrawn(fields: Fields): boolean {
  return isRefused(fields[MEMBER.withdrawn]);
}

/** As `isWithdrawn`, for an item's JSON text. */
export function isWithdrawnBody(body: string): boolean {
  return isWithdrawn(JSON.parse(body) as Fields);
}

export function valueAt(fields: Fields, { key, inner }: Field): unknown {
  const value = fields[key];
  return inner === undefined || value === undefined ? value : fieldsOf(value)[inner];
}

/** A field as text; null if the item has none. @param between what joins the names of a list */
export function fieldText(fields: Fields, field: Field, between = '; '): string | null {
  const value = valueAt(fields, field);
  if (value === undefined) return null;
  if (field.form === 'name') return nameOf(value);
  if (field.form === 'texts') return Array.isArray(value) ? JSON.stringify(allOf(value, textOf)) : null;
  return field.form === 'names' ? allOf(value, nameOf).join(between) || null : textOf(value);
}

/** The entries of a list such as `contributors` that have a name: their places, their names, and what each did. */
export function peopleIn(list: unknown): [position: number, name: string, type: string | null][] {
  return listOf(list).flatMap((one, at) => {
    const name = nameOf(one);
    return name === null ? [] : [[at + 1, name, textOf(fieldsOf(one).type)]];
  });
}

/** The values of `STORED`. For each item of each page: `map` takes longer. */
export function storedOf(fields: Fields): (string | null)[] {
  const values: (string | null)[] = [];
  for (const field of STORED) values.push(fieldText(fields, field));
  return values;
}

/** The values of `STORED` by their names. */
export function named(values: readonly (string | null)[]): Stored {
  return Object.fromEntries(STORED.map(({ name }, at) => [name, values[at] ?? null])) as unknown as Stored;
}

/** The values of `COLUMNS`. */
export function columnsOf(fields: Fields): (string | boolean | null)[] {
  return COLUMNS.map((field) => (field.form === 'sellable' ? !isWithdrawn(fields) : fieldText(fields, field)));
}

const DECIMAL = /^ *[+-]?(\d+\.?\d*|\.\d+) *$/;

/** Some services send prices as text. Null for anything but a number, and beyond 2^53, where whole numbers are rounded. */
function numberOf(value: unknown): number | null {
  const number = typeof value === 'string' && DECIMAL.test(value) ? Number(value) : value;
  return typeof number === 'number' && Math.abs(number) <= Number.MAX_SAFE_INTEGER ? number : null;
}

/** The values of `PRICE_FIELDS` of each price of each variant, in the order of the source, as the source sent them. */
function rawPrices(fields: Fields): unknown[][] {
  return listOf(fields[MEMBER.variants]).flatMap((item) => {
    const variant = fieldsOf(item);
    return listOf(variant[MEMBER.prices]).map((entry) => {
      const objects = { variant, price: fieldsOf(entry) };
      return PRICE_FIELDS.map(({ of, member }) => objects[of][member]);
    });
  });
}

const VALUE = PRICE_FIELDS.findIndex(({ column }) => column === 'value');

/** Whether the item has a price with a number. */
export function hasPrice(fields: Fields): boolean {
  return rawPrices(fields).some((price) => numberOf(price[VALUE]) !== null);
}

type Value = string | number | boolean | null;

const PRICE_VALUES = { text: textOf, number: numberOf, sellable: (value: unknown) => !isRefused(value) } as const;

/** The values of `PARTS`, in the order of the source. */
export function partsOf(fields: Fields): Readonly<Record<Part, Value[][]>> {
  const prices = rawPrices(fields).map((price) =>
    PRICE_FIELDS.map(({ form }, at): Value => PRICE_VALUES[form](price[at])),
  );
  const identifiers = Object.entries(fieldsOf(fields[MEMBER.identifiers])).flatMap(([form, value]) =>
    allOf(Array.isArray(value) ? value : [value], textOf).map((text) => [form, text]),
  );
  return { prices, contributors: peopleIn(fields[MEMBER.contributors]), identifiers };
}

/** The values of `PRICE_FIELDS` for each price, as the source wrote them. */
export function priceTexts(fields: Fields): (string | null)[][] {
  const written = (value: unknown): string | null => (typeof value === 'boolean' ? String(value) : textOf(value));
  return rawPrices(fields).map((price) => price.map(written));
}
