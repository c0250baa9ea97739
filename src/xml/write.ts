import { CatchwordError } from '../errors.ts';

/** An element as it is written. Attributes that are undefined are left out. */
export interface XmlTree {
  readonly name: string;
  readonly attributes?: Readonly<Record<string, string | undefined>>;
  /** Elements, or text. */
  readonly content?: readonly XmlTree[] | string;
}

/** What XML 1.0 cannot hold, however it is written; surrogates without their other half among it. */
const UNWRITABLE = /[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u;
const NAME = /^[A-Za-z_][\w.-]*$/;
const ESCAPES: Readonly<Record<string, string>> = {
  ...{ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' },
  // Written as they are, a reader would make spaces of them in attributes, and line breaks of all kinds one.
  ...{ '\t': '&#9;', '\n': '&#10;', '\r': '&#13;' },
};

/** Whether an element or an attribute may be called so. */
export function isName(name: string): boolean {
  return NAME.test(name);
}

/** Whether XML can hold a text, however it is written. */
export function isWritable(text: string): boolean {
  return !UNWRITABLE.test(text);
}

function escaped(where: string, text: string): string {
  if (!isWritable(text)) {
    throw new CatchwordError('USAGE', `${where} holds a character that XML cannot hold`);
  }
  return text.replace(/[&<>"\t\n\r]/g, (character) => ESCAPES[character] ?? character);
}

function write({ name, attributes = {}, content = [] }: XmlTree): string {
  if (!isName(name)) throw new CatchwordError('USAGE', `${JSON.stringify(name)} is no name of an XML element`);
  let tag = `<${name}`;
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined) continue;
    if (!isName(key)) throw new CatchwordError('USAGE', `${JSON.stringify(key)} is no name of an XML attribute`);
    tag += ` ${key}="${escaped(`${name} ${key}`, value)}"`;
  }
  const inner = typeof content === 'string' ? escaped(name, content) : content.map(write).join('');
  return inner === '' ? `${tag}/>` : `${tag}>${inner}</${name}>`;
}

/**
 * A document in UTF-8, without white space between elements.
 * @throws CatchwordError USAGE where a value holds what XML cannot hold, named by its element and attribute
 */
export function writeXml(root: XmlTree): string {
  return `<?xml version="1.0" encoding="UTF-8"?>\n${write(root)}`;
}
