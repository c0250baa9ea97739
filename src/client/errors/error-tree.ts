import { CatchwordError } from '../../errors.ts';
import { readXml, type XmlElement } from '../../xml/read.ts';

/** A value of an answer with its name, whether it came as JSON, XML or plain text. */
export interface Tree {
  /** Empty at the top, and for items of a list without a name. */
  readonly name: string;
  readonly text: string;
  readonly children: readonly Tree[];
  /** Of XML. An attribute, such as the `reference` of an error, is not part of its message. */
  readonly origin?: 'element' | 'attribute';
}

/** Deeper values are ignored, to limit the work. */
const MAX_DEPTH = 8;
/** Characters. Longer answers hold no error that a person could read. */
const MAX_CHARS = 2 ** 20;

const EMPTY: Tree = { name: '', text: '', children: [] };

/** Attributes and child elements are children alike. */
export function treeOfElement({ name, text, attributes, children }: XmlElement): Tree {
  const ofAttributes = [...attributes].map(
    ([key, value]): Tree => ({ name: key, text: value, children: [], origin: 'attribute' }),
  );
  return { name, text, children: [...ofAttributes, ...children.map(treeOfElement)], origin: 'element' };
}

function treesOfValue(name: string, value: unknown, depth: number): Tree[] {
  if (value === null || depth > MAX_DEPTH) return [{ name, text: '', children: [] }];
  if (Array.isArray(value)) return value.flatMap((one) => treesOfValue(name, one, depth + 1));
  if (typeof value === 'string') return [{ name, text: value, children: [] }];
  if (typeof value !== 'object') return [{ name, text: JSON.stringify(value), children: [] }];
  const children = Object.entries(value).flatMap(([key, one]) => treesOfValue(key, one, depth + 1));
  return [{ name, text: '', children }];
}

function topOf(trees: readonly Tree[]): Tree {
  const [only = EMPTY] = trees;
  return trees.length > 1 ? { ...EMPTY, children: trees } : only;
}

/** A page for people, such as the error page of a proxy. */
export function isPage(body: string): boolean {
  return !/^\s*["[{]/.test(body) && /<html|<!doctype/i.test(body);
}

export function treeOfElements(elements: readonly XmlElement[]): Tree {
  return topOf(elements.map(treeOfElement));
}

/** The tree of a body: XML, JSON, or one text. Empty for a page, for broken XML, and for what is too long. */
export function treeOfBody(body: string): Tree {
  if (body.length > MAX_CHARS || isPage(body)) return EMPTY;
  try {
    return /^\s*</.test(body) ? treeOfElements(readXml(body)) : topOf(treesOfValue('', JSON.parse(body), 0));
  } catch (error) {
    return error instanceof CatchwordError ? EMPTY : { ...EMPTY, text: body.trim() };
  }
}

/** The text of the first value with this name that is not empty, at any depth. */
export function textIn(tree: Tree, name: string): string | undefined {
  if (tree.name === name && tree.text.trim() !== '') return tree.text;
  for (const child of tree.children) {
    const found = textIn(child, name);
    if (found !== undefined) return found;
  }
  return undefined;
}
