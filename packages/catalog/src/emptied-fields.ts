import type { Difference, Pointer } from './content.ts';
import { type Fields, fieldText, hasPrice } from './field-values.ts';
import { COLUMNS, type Field, MEMBER } from './fields.ts';

/** What an update may empty: its name for people, where the item has it, and whether an item has a value there. */
interface Counted {
  readonly name: string;
  readonly path: readonly [key: string, ...inner: string[]];
  readonly has: (fields: Fields) => boolean;
}

/** The column of an empty list of texts. */
const NO_TEXTS = '[]';

function counted(field: Field): Counted {
  const { column: name, key, inner } = field;
  const has = (fields: Fields) => ![null, NO_TEXTS].includes(fieldText(fields, field));
  return { name, path: inner === undefined ? [key] : [key, inner], has };
}

/** Without `distributable`, which an absent member does not empty: it means yes. Prices need a number to count. */
const COUNTED: readonly Counted[] = [
  ...COLUMNS.filter(({ form }) => form !== 'sellable').map(counted),
  { name: 'prices', path: [MEMBER.variants, '*', MEMBER.prices, '*', 'value'], has: hasPrice },
];

/**
 * Returns what names the known fields that an update empties: columns of `catalog`, and `prices` for the last price.
 * @param ignored fields whose changes do not matter
 */
export function createEmptiedFields(ignored: readonly Pointer[]) {
  const fields = COUNTED.filter(
    ({ path }) => !ignored.some((pointer) => pointer.every((part, at) => part === path[at])),
  );
  // Most updates change no such member, and a search takes a small part of the time of parsing.
  const members = new RegExp(`"(?:${[...new Set(fields.map(({ path }) => path[0]))].join('|')})":`);

  return ({ before }: Pick<Difference, 'before'>, body: string): string[] => {
    if (!members.test(before)) return [];
    const was = JSON.parse(before) as Fields;
    const had = fields.filter(({ has }) => has(was));
    if (had.length === 0) return [];
    const is = JSON.parse(body) as Fields;
    return had.filter(({ has }) => !has(is)).map(({ name }) => name);
  };
}
