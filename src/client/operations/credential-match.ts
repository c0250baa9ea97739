import type { XmlElement } from '../../xml/read.ts';
import { attribute } from '../xml-answer.ts';
import type { CredentialSubmission } from './credential.ts';

/*
 * Which element of an answer is about which submission. No account may be given the credential of another, so:
 *
 * - A key leads to an element: the reference, the guid or the token that was submitted.
 * - The place alone leads to a credential only where the answer is in order: there is an element for each submission, and
 *   none of them is about an account that was submitted at another place. That relies on a service which verifies or
 *   refuses alike what it is asked under the same key.
 * - Errors hold nothing that could fall into the wrong hands. Where only they are left, and as many as there are
 *   submissions without an element, they are taken in order.
 *
 * Credentials of one account have the same token, whatever else the service leaves out: that tells a repetition.
 */

/** An element of the answer, and which account it says it is about. */
export interface Element {
  readonly element: XmlElement;
  readonly reference: string | null;
  readonly guid: string | null;
  readonly accessToken: string | null;
}

export function elementFrom(element: XmlElement): Element {
  return {
    element,
    reference: attribute(element, 'reference'),
    guid: attribute(element, 'guid'),
    accessToken: attribute(element, 'access-token'),
  };
}

const KEYS = ['reference', 'guid', 'accessToken'] as const;

function isError({ element }: Element): boolean {
  return element.name === 'error';
}

/** Each key that is there, with its name, so that a guid is no reference. */
function keysOf(one: Element | CredentialSubmission): string[] {
  return KEYS.flatMap((key) => (one[key] == null ? [] : [`${key} ${one[key]}`]));
}

/** Does what an element says it is about contradict what was submitted? Tokens do not: the answer holds the valid one. */
export function contradicts(found: Element, { reference, guid }: CredentialSubmission): boolean {
  const otherReference = reference !== undefined && found.reference !== null && found.reference !== reference;
  const otherGuid = guid !== undefined && found.guid !== null && found.guid !== guid;
  return otherReference || otherGuid;
}

function sharesKey(one: Element | CredentialSubmission, other: Element | CredentialSubmission): boolean {
  return KEYS.some((key) => one[key] != null && one[key] === other[key]);
}

function isAbout(found: Element, submission: CredentialSubmission): boolean {
  return sharesKey(found, submission) && !contradicts(found, submission);
}

/** By each key, the first that has it. */
function indexed<One extends Element | CredentialSubmission>(all: readonly One[]): Map<string, One> {
  const index = new Map<string, One>();
  for (const one of all) for (const key of keysOf(one)) if (!index.has(key)) index.set(key, one);
  return index;
}

/** Without what comes again: an account may be answered for more than once, and the first counts. */
function withoutRepetitions(elements: readonly Element[]): Element[] {
  const seen = new Set<string>();
  return elements.filter((one) => {
    const keys = keysOf(one).map((key) => `${one.element.name} ${key}`);
    const isAgain = keys.some((key) => seen.has(key));
    for (const key of keys) seen.add(key);
    return !isAgain;
  });
}

/**
 * Whether the place of an element tells whose it is. The keys of an error prove nothing: its user may have been submitted
 * under another key as well.
 */
function isInOrder(placed: readonly Element[], submissions: readonly CredentialSubmission[]): boolean {
  const submitted = indexed(submissions);
  const answered = new Map<string, CredentialSubmission>();
  return submissions.every((submission, place) => {
    const there = placed[place];
    if (there === undefined || contradicts(there, submission)) return false;
    if (isError(there)) return true;
    const isOwn = isAbout(there, submission);
    return keysOf(there).every((key) => {
      const asked = submitted.get(key);
      if (asked !== undefined && !isOwn && !sharesKey(asked, submission)) return false;
      const before = answered.get(key);
      answered.set(key, before ?? submission);
      return before === undefined || sharesKey(before, submission) || (isOwn && isAbout(there, before));
    });
  });
}

export interface Matched {
  /** In the order of the submissions. */
  readonly found: readonly (Element | undefined)[];
  /** The element at the place of each submission; empty where there is not one for each. */
  readonly placed: readonly Element[];
}

/** Finds the element of each submission. An account that was submitted twice may have the same one twice. */
export function matched(elements: readonly Element[], submissions: readonly CredentialSubmission[]): Matched {
  const distinct = withoutRepetitions(elements);
  const placed = [elements, distinct].find(({ length }) => length === submissions.length) ?? [];
  const credentials = indexed(elements.filter((one) => !isError(one)));
  const errors = indexed(elements.filter(isError));
  const byKey = submissions.map((submission, place) => {
    const there = placed[place];
    if (there !== undefined && isAbout(there, submission)) return there;
    return [credentials, errors]
      .flatMap((index) => keysOf(submission).map((key) => index.get(key)))
      .find((element) => element !== undefined && !contradicts(element, submission));
  });
  if (isInOrder(placed, submissions)) return { placed, found: byKey.map((one, place) => one ?? placed[place]) };
  const used = new Set(byKey);
  const left = distinct.filter((one) => !used.has(one));
  const open = submissions.filter((_, place) => byKey[place] === undefined);
  if (left.length !== open.length || !left.every(isError)) return { placed, found: byKey };
  const found = submissions.map((submission, place) => {
    const error = byKey[place] ?? left.shift();
    return error === undefined || contradicts(error, submission) ? undefined : error;
  });
  return { placed, found };
}
