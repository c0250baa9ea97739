import type { CatchwordError } from '../../errors.ts';
import type { XmlElement } from '../../xml/read.ts';
import { isPage, saidByElements } from '../errors/error-body.ts';
import { cleaned, isErrorName, MAX_TEXT, type Said } from '../errors/error-messages.ts';
import { CODE, ERROR, STATUS, TEXT, WRAPPER } from '../errors/error-names.ts';
import { serviceError } from '../errors/service-error.ts';
import type { Hide } from '../redact.ts';
import type { XmlAnswer } from './response.ts';

/** Records of an answer and what stands beside them. */
export interface Records {
  /** In the order of the answer, at whatever depth. */
  readonly records: readonly XmlElement[];
  /** Everything else, as it is nested: counts, errors, the root itself. */
  readonly others: readonly XmlElement[];
  /** The root without its records; none where it was left out, which has been seen. */
  readonly roots: readonly XmlElement[];
}

/** Takes the elements called `names` out of the answer. What tells of an error is left whole. */
export function recordsIn({ elements }: XmlAnswer, root: string, names: readonly string[]): Records {
  const records: XmlElement[] = [];
  const roots: XmlElement[] = [];
  function without(element: XmlElement): XmlElement[] {
    if (names.includes(element.name)) {
      records.push(element);
      return [];
    }
    if (isErrorName(element)) return [element];
    const left = { ...element, children: element.children.flatMap(without) };
    if (element.name === root) roots.push(left);
    return [left];
  }
  const others = elements.flatMap(without);
  return { records, others, roots };
}

/** An attribute that is there and not empty. */
export function attribute({ attributes }: XmlElement, name: string): string | null {
  return attributes.get(name) || null;
}

/** What an element says by name: its attributes, and the texts of its children where there is no such attribute. */
export function fieldsOf({ attributes, children }: XmlElement): ReadonlyMap<string, string> {
  // A copy for each of ten thousand elements would take memory.
  if (children.length === 0) return attributes;
  const fields = new Map(children.map(({ name, text }) => [name, text]));
  for (const [name, value] of attributes) if (value !== '' || !fields.has(name)) fields.set(name, value);
  return fields;
}

/** Fields besides those that have a place of their own. */
export function othersIn(fields: ReadonlyMap<string, string>, known: readonly string[]): Record<string, string> {
  return Object.fromEntries([...fields].filter(([name]) => !known.includes(name)));
}

/** The error that elements hold, whatever the status was (interface, 4.2 rule 4), or undefined. */
export function errorIn(
  elements: readonly XmlElement[],
  { status, hide, refusal }: XmlAnswer,
  origin: string,
): CatchwordError | undefined {
  const said = saidByElements(elements, hide);
  return refusal ?? (said === undefined ? undefined : serviceError(said, status, origin));
}

/** What is said in words under this name is for people; anything else may be a token, a password or an email address. */
function isForPeople(name: string): boolean {
  return [TEXT, ERROR, WRAPPER, CODE, STATUS].some((known) => known.test(name));
}

function attributesAsChildren(attributes: XmlElement['attributes']): XmlElement[] {
  return [...attributes].map(([name, text]) => ({ name, text, attributes: new Map(), children: [] }));
}

/** What an element says to people, all of it in elements. */
function wordsOf({ name, text, attributes, children }: XmlElement, root: string): XmlElement {
  return {
    name,
    text: name === root || isForPeople(name) ? text : '',
    attributes: new Map(),
    children: [...attributesAsChildren(attributes), ...children].map((child) => wordsOf(child, root)),
  };
}

/** Long, or with a digit in it. */
const LIKE_TOKEN = /(?=\S*\d)\S{6,}|\S{16,}/g;

/** What plain text says to people: a word alone that has a digit may be an identifier or a token, and goes unsaid. */
function plainWords(plain: string, hide: Hide): string {
  if (isPage(plain) || /^\S*\d\S*$/.test(plain)) return '';
  const words = /token|password/i.test(plain) ? plain.replace(LIKE_TOKEN, '[secret]') : plain;
  return cleaned({ texts: [[words]] }, hide).text;
}

function namesIn({ name, attributes, children }: XmlElement): string[] {
  return [name, ...attributes.keys(), ...children.flatMap(namesIn)];
}

/** For comfort. */
const MAX_NAMES = 10;

/**
 * An answer that holds nothing of what was asked for: what it says in words is why. Of anything else, the names alone are
 * shown; of plain text, all of it. A page for people is not the service's.
 * @param what was asked for, in one word; the root where there is one
 */
export function unexpected(what: string, answer: XmlAnswer, origin: string): CatchwordError {
  const { status, hide, refusal, plain = '' } = answer;
  const elements = answer.elements.filter(({ name }) => !/^html$/i.test(name));
  const code = saidByElements(elements, hide, true)?.code;
  const words = elements.map((element) => wordsOf(element, what));
  const text = saidByElements(words, hide, true)?.text || plainWords(plain, hide);
  const names = [...new Set(elements.flatMap(namesIn))].filter((name) => name !== what).slice(0, MAX_NAMES);
  const only = names.length === 0 ? '' : `, but ${hide(names.join(', '), MAX_TEXT)}`;
  const isSaid = code !== undefined || text !== '';
  const said: Said = { code, text: isSaid ? text : `no ${what}, and no error either${only}` };
  return refusal ?? serviceError(said, status, origin);
}
