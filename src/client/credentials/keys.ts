import type { XmlElement } from '../../xml/read.ts';
import { fieldsOf } from '../http/xml-records.ts';
import type { CredentialSubmission } from './submission.ts';

/** An element of the answer, and which account it says it is about. */
export interface Element {
  readonly element: XmlElement;
  /** Attributes, and the texts of child elements for which there is none. */
  readonly fields: ReadonlyMap<string, string>;
  readonly reference: string | null;
  readonly guid: string | null;
  readonly accessToken: string | null;
}

type Keyed = Element | CredentialSubmission;

export function elementFrom(element: XmlElement): Element {
  const fields = fieldsOf(element);
  const field = (name: string): string | null => fields.get(name) || null;
  return {
    ...{ element, fields, reference: field('reference'), guid: field('guid') },
    accessToken: field('access-token'),
  };
}

const KEYS = ['reference', 'guid', 'accessToken'] as const;

function isThere(value: string | null | undefined): value is string {
  return value !== null && value !== undefined;
}

/** Each key that is there, with its name, so that a guid is no reference. */
export function keysOf(one: Keyed): string[] {
  return KEYS.flatMap((key) => (isThere(one[key]) ? [`${key} ${one[key]}`] : []));
}

export function sharesKey(one: Keyed, other: Keyed): boolean {
  return KEYS.some((key) => isThere(one[key]) && one[key] === other[key]);
}

/** Databases compare without case, and without spaces at the end. */
function folded(value: string): string {
  return value.trim().toLowerCase();
}

/** Does what an element says it is about contradict what was submitted? Tokens do not: the answer holds the valid one. */
export function contradicts(found: Element, submission: CredentialSubmission): boolean {
  return (['reference', 'guid'] as const).some((key) => {
    const [one, other] = [found[key], submission[key]];
    return isThere(one) && isThere(other) && folded(one) !== folded(other);
  });
}

export function isAbout(found: Element, submission: CredentialSubmission): boolean {
  return sharesKey(found, submission) && !contradicts(found, submission);
}

/** By how it is compared, each value that was submitted but not answered for; none where two are the same that way. */
function spellings(
  key: 'reference' | 'guid',
  submissions: readonly CredentialSubmission[],
  answered: ReadonlySet<string>,
): Map<string, string> {
  const isOpen = (one: CredentialSubmission): boolean => !keysOf(one).some((each) => answered.has(each));
  // It might be about one that was submitted by something else, and whose reference another account has in other case.
  if (submissions.some((one) => isOpen(one) && one[key] === undefined)) return new Map();
  const values = [...new Set(submissions.flatMap((one) => one[key] ?? []))];
  const counts = new Map<string, number>();
  for (const value of values) counts.set(folded(value), (counts.get(folded(value)) ?? 0) + 1);
  const known = values.filter((value) => counts.get(folded(value)) === 1 && !answered.has(`${key} ${value}`));
  return new Map(known.map((value) => [folded(value), value]));
}

/**
 * Elements with their references and guids as submitted, where they differ in no more than case and outer spaces. What is
 * the same to the letter goes first.
 */
export function asSubmitted(elements: readonly Element[], submissions: readonly CredentialSubmission[]): Element[] {
  const submitted = new Set(submissions.flatMap(keysOf));
  const answered = new Set(elements.flatMap(keysOf));
  const references = spellings('reference', submissions, answered);
  const guids = spellings('guid', submissions, answered);
  return elements.map((one) => {
    if (keysOf(one).some((key) => submitted.has(key))) return one;
    const { reference, guid } = one;
    return {
      ...one,
      reference: reference === null ? null : (references.get(folded(reference)) ?? reference),
      guid: guid === null ? null : (guids.get(folded(guid)) ?? guid),
    };
  });
}
