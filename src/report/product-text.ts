import { sameContent } from '../catalog/content.ts';
import { elementsOf, objectMembers } from '../catalog/json-text.ts';

/*
 * The known fields of a product for a person. They are read from the texts of JSON, so that a number is shown exactly as
 * the service wrote it.
 */

const NONE: ReadonlyMap<string, string> = new Map();

/** A string's value, or another scalar as it is written. Null if absent, null, empty or `"null"`. */
function scalarOf(json: string | undefined): string | null {
  if (json === undefined || json === 'null' || /^[[{]/.test(json)) return null;
  const text = json.startsWith('"') ? (JSON.parse(json) as string) : json;
  return text === '' || text === 'null' ? null : text;
}

function membersOf(json: string | undefined): ReadonlyMap<string, string> {
  return json?.startsWith('{') ? objectMembers(json) : NONE;
}

function listOf(json: string | undefined): readonly string[] {
  return json?.startsWith('[') ? elementsOf(json) : [];
}

/** The name in a field that is either a name or an object with a name. */
function nameOf(json: string | undefined): string | null {
  const members = membersOf(json);
  return scalarOf(json) ?? scalarOf(members.get('name')) ?? scalarOf(members.get('value'));
}

export interface PriceText {
  readonly sku: string | null;
  readonly type: string | null;
  readonly duration: string | null;
  readonly currency: string | null;
  readonly value: string | null;
}

function pricesOf(json: string | undefined): PriceText[] {
  return listOf(json).flatMap((item) => {
    const variant = membersOf(item);
    return listOf(variant.get('prices')).map((entry) => {
      const price = membersOf(entry);
      return {
        sku: scalarOf(variant.get('sku')),
        type: scalarOf(price.get('type')),
        duration: scalarOf(variant.get('duration')),
        currency: scalarOf(price.get('currency')),
        value: scalarOf(price.get('value')),
      };
    });
  });
}

/** @param body the text of a JSON object */
export function productText(body: string) {
  const members = objectMembers(body);
  const identifiers = membersOf(members.get('identifiers'));
  const metadata = membersOf(members.get('metadata'));
  const contributors = listOf(members.get('contributors')).flatMap((json) => {
    const name = nameOf(json);
    return name === null ? [] : [{ name, role: scalarOf(membersOf(json).get('type')) }];
  });
  const labelled: readonly (readonly [label: string, value: string | null])[] = [
    ['Title', scalarOf(members.get('title'))],
    ['Subtitle', scalarOf(members.get('subtitle'))],
    ['Publisher', nameOf(members.get('publisher'))],
    ['Imprint', scalarOf(metadata.get('imprint_name'))],
    ['Kind', nameOf(members.get('kind'))],
    ['Format', nameOf(members.get('format'))],
    ['Language', scalarOf(members.get('language'))],
    ['Edition', scalarOf(members.get('edition'))],
    ['Print ISBN', scalarOf(identifiers.get('print_isbn_canonical'))],
    ['E-book ISBN', scalarOf(identifiers.get('eisbn_canonical'))],
    ['On sale from', scalarOf(members.get('on_sale_date'))],
    ['On sale until', scalarOf(members.get('off_sale_date'))],
    ['Pages', scalarOf(metadata.get('page_count'))],
    ['Description', scalarOf(metadata.get('description'))],
  ];
  return {
    /** Those that the product has, with labels for a person. */
    fields: labelled.flatMap(([label, value]) => (value === null ? [] : [{ label, value }])),
    contributors,
    cover: scalarOf(membersOf(members.get('resource_links')).get('cover_image')),
    prices: pricesOf(members.get('variants')),
    /** The service says `distributable: false`: it must not be sold any more. */
    withdrawn: scalarOf(members.get('distributable')) === 'false',
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

/** Two texts, shortened to the part in which they differ. */
export function differingParts(before: string, after: string): readonly [before: string, after: string] {
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
 * What differs between two texts of a field, as small as possible: of prices, the value of the one that changed. Texts
 * that have the same content have one difference, themselves.
 */
export function partChanges(before: string | null, after: string | null): readonly PartChange[] {
  const whole = { path: [], before, after };
  if ((before?.length ?? 0) + (after?.length ?? 0) > MOST_SEARCHED) return [whole];
  const found = [...differences([], before, after)];
  return found.length === 0 ? [whole] : found;
}
