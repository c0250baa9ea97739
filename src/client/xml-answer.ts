import type { CatchwordError } from '../errors.ts';
import type { XmlElement } from '../xml/read.ts';
import type { XmlAnswer } from './answer.ts';
import { serviceError } from './refusal.ts';
import { saidByElements } from './said.ts';
import { isErrorName, type Said } from './said-part.ts';

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

/** Attributes besides those that have a field of their own. */
export function otherAttributes({ attributes }: XmlElement, known: readonly string[]): Record<string, string> {
  return Object.fromEntries([...attributes].filter(([name]) => !known.includes(name)));
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

/** An answer that holds nothing of what was asked for: all that it says is why. A page for people is not the service's. */
export function unexpected(what: string, answer: XmlAnswer, origin: string): CatchwordError {
  const { status, hide, refusal, elements } = answer;
  const said = saidByElements(
    elements.filter(({ name }) => !/^html$/i.test(name)),
    hide,
    true,
  );
  const isSaid = said !== undefined && (said.code !== undefined || said.text !== '');
  const nothing: Said = { code: undefined, text: `no ${what}, and no error either` };
  return refusal ?? serviceError(isSaid ? said : nothing, status, origin);
}
