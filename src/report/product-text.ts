import { printable } from '@catchword/base/printable';
import { sameContent } from '@catchword/catalog/content';
import { type Fields, fieldText, isWithdrawn, peopleIn, priceTexts, valueAt } from '@catchword/catalog/field-values';
import { SHOWN } from '@catchword/catalog/fields';
import { elementsOf, objectMembers } from '@catchword/catalog/json-text';
import type { FieldChange, ProductChange } from '../store/history/history.ts';

/** A string, or a number. */
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g;

/** Parses an item with its numbers as texts, so that they are shown exactly as the service wrote them. */
function parseExactly(body: string): Fields {
  return JSON.parse(body.replace(TOKEN, (token) => (token.startsWith('"') ? token : `"${token}"`))) as Fields;
}

/** The known fields of a product for a person. @param body the text of a JSON object */
export function productText(body: string) {
  const fields = parseExactly(body);
  const shown = SHOWN.map((field) => {
    const text = fieldText(fields, field);
    const one = text === null ? [] : [{ text, role: null }];
    // Contributors may be many, and have roles.
    const people = () => peopleIn(valueAt(fields, field)).map(([, name, role]) => ({ text: name, role }));
    const texts: readonly { text: string; role: string | null }[] = field.form === 'names' ? people() : one;
    return { label: field.label ?? '', isLink: field.form === 'link', texts };
  });
  return {
    fields: shown.filter(({ texts }) => texts.length > 0),
    prices: priceTexts(fields),
    /** The service says `distributable: false`: it must not be sold any more. */
    withdrawn: isWithdrawn(fields),
  };
}

/** Values up to this length are shown whole, characters. */
const WHOLE = 120;
/** Characters shown around what differs. */
const CONTEXT = 30;
/** The most characters shown of what differs. */
const MOST = 400;

/** Part of a text, with `…` where it was cut. Does not cut a character in two. */
export function excerpt(text: string, from: number, to: number): string {
  const isInside = (at: number) => at > 0 && at < text.length && (text.codePointAt(at - 1) ?? 0) > 0xffff;
  const start = isInside(from) ? from + 1 : from;
  const end = isInside(to) ? to - 1 : to;
  return `${start > 0 ? '…' : ''}${text.slice(start, end)}${end < text.length ? '…' : ''}`;
}

/** Two texts, shortened to the part in which they differ; as they are if one is absent. */
export function differingParts(before: string | null, after: string | null): readonly [string | null, string | null] {
  if (before === null || after === null) return [before, after];
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && before.charCodeAt(start) === after.charCodeAt(start)) start++;
  let end = 0;
  while (
    end < shorter - start &&
    before.charCodeAt(before.length - 1 - end) === after.charCodeAt(after.length - 1 - end)
  )
    end++;
  const isShort = before.length <= WHOLE && after.length <= WHOLE;
  const part = (text: string): string => {
    if (isShort) return text;
    const from = Math.max(0, start - CONTEXT);
    return excerpt(text, from, Math.min(text.length, text.length - end + CONTEXT, from + MOST));
  };
  return [part(before), part(after)];
}

/** Longer values are not searched for the parts that differ, characters. For safety: a page shows many changes. */
const MOST_SEARCHED = 20_000;

/** A part of a field that differs: where it is, and its texts; null if it is absent. */
export interface PartChange {
  readonly path: readonly string[];
  readonly before: string | null;
  readonly after: string | null;
}

/** The parts of a list by their numbers, from 1 on, or of an object by their names; null for other values. */
function partsOf(json: string): ReadonlyMap<string, string> | null {
  if (json.startsWith('{')) return objectMembers(json);
  if (json.startsWith('[')) return new Map(elementsOf(json).map((element, at) => [String(at + 1), element]));
  return null;
}

function* differences(path: readonly string[], before: string | null, after: string | null): Iterable<PartChange> {
  if (before !== null && after !== null) {
    if (sameContent(before, after)) return;
    const was = partsOf(before);
    const is = partsOf(after);
    // Elements of lists of different lengths may not correspond to each other.
    const isComparable = before[0] === after[0] && (before[0] === '{' || was?.size === is?.size);
    if (was !== null && is !== null && isComparable) {
      for (const name of new Set([...was.keys(), ...is.keys()])) {
        yield* differences([...path, name], was.get(name) ?? null, is.get(name) ?? null);
      }
      return;
    }
  }
  yield { path, before, after };
}

/**
 * Finds the smallest parts that differ between two texts of a field: of a list of prices, the value that changed. Texts
 * with the same content have one difference, themselves.
 */
export function partChanges(before: string | null, after: string | null): readonly PartChange[] {
  const whole = { path: [], before, after };
  if ((before?.length ?? 0) + (after?.length ?? 0) > MOST_SEARCHED) return [whole];
  const found = [...differences([], before, after)];
  return found.length === 0 ? [whole] : found;
}

/** Says what a change without changed fields means. */
export const WITHOUT_FIELDS: Readonly<Record<ProductChange['op'], string>> = {
  created: 'The product was seen for the first time.',
  updated: 'No field changed its value.',
  removed: 'The service no longer listed the product.',
  restored: 'The service listed the product again, as it was before.',
};

/** What a change changed, a line for each part. */
export function changeLines({ op, fields }: ProductChange): string[] {
  if (fields.length === 0) return [WITHOUT_FIELDS[op]];
  return fields.flatMap(({ field, before, after }: FieldChange) =>
    partChanges(before, after).map(({ path, before: was, after: is }) => {
      const texts = differingParts(was, is).map((text) => text ?? 'not set');
      return printable(`${[field, ...path].join(' › ')}: ${texts.join(' → ')}`);
    }),
  );
}
