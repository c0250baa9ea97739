import { CatchwordError } from '../../errors.ts';
import type { XmlElement } from '../../xml/read.ts';
import { errorIn, isErrorName, messageIn } from '../errors/error-message.ts';
import { type Tree, textIn, treeOfBody } from '../errors/error-tree.ts';
import { serviceError } from '../errors/service-error.ts';
import type { XmlAnswer } from './answer.ts';

/**
 * Takes the elements called `names` out of the answer. Elements called `error` or `errors` are not searched.
 * @returns the records in the order of the answer, at any depth; `others`, everything else, nested as received: counts,
 *   errors, the root itself; `roots`, the root without its records, empty if the root is missing, which has been seen
 * @rule 4.2-5, 4.2-9
 */
export function recordsIn(elements: readonly XmlElement[], root: string, names: readonly string[]) {
  const records: XmlElement[] = [];
  const roots: XmlElement[] = [];
  function without(element: XmlElement): XmlElement[] {
    if (names.includes(element.name)) {
      records.push(element);
      return [];
    }
    if (isErrorName(element.name)) return [element];
    const left = { ...element, children: element.children.flatMap(without) };
    if (element.name === root) roots.push(left);
    return [left];
  }
  const others = elements.flatMap(without);
  return { records, others, roots };
}

/** Attributes by name, and the texts of child elements without such an attribute. */
export function fieldsOf({ attributes, children }: XmlElement): ReadonlyMap<string, string> {
  // Copying the map of each of ten thousand elements would cost memory.
  if (children.length === 0) return attributes;
  const fields = new Map(children.map(({ name, text }) => [name, text]));
  for (const [name, value] of attributes) if (value !== '' || !fields.has(name)) fields.set(name, value);
  return fields;
}

/** The fields without those called `known`. */
export function othersIn(fields: ReadonlyMap<string, string>, known: readonly string[]): Record<string, string> {
  return Object.fromEntries([...fields].filter(([name]) => !known.includes(name)));
}

/**
 * The error in a part of an answer, at any status (interface, 4.2 rule 4); undefined if there is none.
 * @param fields of a record: an element with one of them has no error code of its own
 */
export function errorOfTree(
  tree: Tree,
  { status, hide, refusal, origin }: XmlAnswer,
  fields: readonly string[] = [],
): CatchwordError | undefined {
  const message = errorIn(tree, fields, hide);
  return refusal ?? (message && serviceError(message, status, origin));
}

const MAX_NAMES = 10;
/** Characters. */
const MAX_SHOWN = 200;

function namesIn({ name, attributes, children }: XmlElement): string[] {
  return [name, ...attributes.keys(), ...children.flatMap(namesIn)];
}

/** What could be a token: long, or with a digit in it. */
const LIKE_TOKEN = /(?=\S*\d)\S{6,}|\S{24,}/g;

/**
 * The error of an answer that has neither what was asked for nor an error. It shows a message for people and the names of
 * elements: other values may be tokens, passwords or email addresses.
 * @param what what was asked for: the name of the root
 */
export function unexpected(what: string, { elements, text, status, hide, refusal, origin }: XmlAnswer): CatchwordError {
  if (refusal !== undefined) return refusal;
  const tree = treeOfBody(text);
  const { code } = messageIn(tree, hide);
  const words = textIn(tree, 'message') ?? textIn(tree, 'description') ?? (tree.children.length === 0 ? tree.text : '');
  const shown = hide(words.replace(LIKE_TOKEN, '[secret]'), MAX_SHOWN);
  if (code !== undefined) return serviceError({ code, text: shown }, status, origin);
  const names = [...new Set(elements.flatMap(namesIn))].slice(0, MAX_NAMES).join(', ');
  const found = [shown === '' ? [] : `“${shown}”`, names === '' ? [] : hide(names, MAX_SHOWN)].flat().join(' in ');
  return new CatchwordError('SERVICE_ERROR', `${origin} answered without ${what}${found === '' ? '' : `: ${found}`}`, {
    hint: 'Ask the service: its answer is neither a result nor an error.',
    status,
  });
}
