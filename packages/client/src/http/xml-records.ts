import { CatchwordError } from '@catchword/base/errors';
import type { XmlElement } from '@catchword/xml/read';
import { errorInXml, messageIn } from '../errors/error-message.ts';
import { serviceError } from '../errors/service-error.ts';
import type { XmlAnswer } from './answer.ts';

/**
 * Takes the elements called `names` out of the answer, at any depth. `others` is everything else, nested as received:
 * counts, errors, the root itself, which may be missing.
 * @rule 4.2-5, 4.2-9
 */
export function recordsIn(elements: readonly XmlElement[], names: readonly string[]) {
  const records: XmlElement[] = [];
  function without(element: XmlElement): XmlElement[] {
    if (!names.includes(element.name)) return [{ ...element, children: element.children.flatMap(without) }];
    records.push(element);
    return [];
  }
  return { records, others: elements.flatMap(without) };
}

/** Attributes by name, and the texts of child elements without such an attribute. */
export function fieldsOf({ attributes, children }: XmlElement): ReadonlyMap<string, string> {
  // Copying the map of each of ten thousand elements would cost memory.
  if (children.length === 0) return attributes;
  const fields = new Map(children.map(({ name, text }) => [name, text]));
  for (const [name, value] of attributes) if (value !== '' || !fields.has(name)) fields.set(name, value);
  return fields;
}

export function othersIn(fields: ReadonlyMap<string, string>, known: readonly string[]): Record<string, string> {
  return Object.fromEntries([...fields].filter(([name]) => !known.includes(name)));
}

/** The error in elements of an answer (interface, 4.2 rule 4); undefined if there is none. */
export function errorOf(elements: readonly XmlElement[], answer: XmlAnswer): CatchwordError | undefined {
  const message = errorInXml(elements, answer.hide);
  return message && serviceError(message, answer.status, answer.origin);
}

/** Characters of names that an error shows. */
const MAX_NAMES = 200;
/** What could be a token: long, or with a digit in it. */
const LIKE_TOKEN = /(?=\S*\d)\S{6,}|\S{24,}/g;

/**
 * The error of an answer that has neither `what` was asked for nor an error of a known layout. It shows a plain text, and
 * the names of the outer elements: values may be tokens, passwords or email addresses.
 */
export function unexpected(what: string, { elements, text, status, hide, origin }: XmlAnswer): CatchwordError {
  const { code, text: said } = messageIn(text, hide);
  const words = said.replace(LIKE_TOKEN, '[secret]');
  if (code !== undefined) return serviceError({ code, text: words }, status, origin);
  const names = elements.flatMap(({ name, children }) => [name, ...children.map((child) => child.name)]);
  const found = words === '' ? hide([...new Set(names)].join(', '), MAX_NAMES) : `“${words}”`;
  return new CatchwordError('SERVICE_ERROR', `${origin} answered without ${what}${found === '' ? '' : `: ${found}`}`, {
    hint: 'Ask the service: its answer is neither a result nor an error.',
    status,
  });
}
