import type { CatchwordError } from '../errors.ts';
import type { XmlElement } from '../xml/read.ts';
import type { XmlAnswer } from './caller.ts';
import { serviceError } from './refusal.ts';
import { type Said, saidByElements } from './said.ts';

/** A record of an answer and what stands beside it. */
export interface Records {
  /** In the order of the answer. */
  readonly records: readonly XmlElement[];
  /** Everything else: counts, errors. */
  readonly others: readonly XmlElement[];
  /** Whether the root was there. Bodies without it have been seen. */
  readonly hasRoot: boolean;
}

/** Finds the elements called `names` in the root, or at the top where the root is missing. */
export function recordsIn({ elements }: XmlAnswer, root: string, names: readonly string[]): Records {
  const roots = elements.filter(({ name }) => name === root);
  const all = [...roots.flatMap(({ children }) => children), ...elements.filter((one) => !roots.includes(one))];
  // An error may stand on the root itself.
  const bare = roots.map((one) => ({ ...one, children: [] }));
  return {
    records: all.filter(({ name }) => names.includes(name)),
    others: [...bare, ...all.filter(({ name }) => !names.includes(name))],
    hasRoot: roots.length > 0,
  };
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
  { status, refusal }: XmlAnswer,
  origin: string,
): CatchwordError | undefined {
  const said = saidByElements(elements);
  return refusal ?? (said === undefined ? undefined : serviceError(said, status, origin));
}

/** An answer that is something else than was asked for. */
export function unexpected(what: string, { status, refusal }: XmlAnswer, origin: string): CatchwordError {
  const said: Said = { code: undefined, text: `no ${what}, and no error either` };
  return refusal ?? serviceError(said, status, origin);
}
