import { CatchwordError } from '@catchword/base/errors';

/** An element to write. Undefined attributes are omitted. */
export interface XmlTree {
  readonly name: string;
  readonly attributes?: Readonly<Record<string, string | undefined>>;
  /** Elements, or text. */
  readonly content?: readonly XmlTree[] | string;
}

/** Characters that XML 1.0 does not allow even when escaped, lone surrogates included. */
const UNWRITABLE = /[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u;
const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  // Unescaped, a reader turns them into spaces in attributes, and normalizes line breaks.
  '\t': '&#9;',
  '\n': '&#10;',
  '\r': '&#13;',
};

/** Whether it is a valid name of an element or attribute. */
export function isName(name: string): boolean {
  return /^[A-Za-z_][\w.-]*$/.test(name);
}

/** Whether XML can contain the text, escaped if necessary. */
export function isWritable(text: string): boolean {
  return !UNWRITABLE.test(text);
}

function usage(message: string): CatchwordError {
  return new CatchwordError('USAGE', message);
}

function escaped(where: string, text: string): string {
  if (!isWritable(text)) throw usage(`${where} has a character that is not allowed in XML`);
  return text.replace(/[&<>"\t\n\r]/g, (character) => ESCAPES[character] ?? character);
}

function write({ name, attributes = {}, content = [] }: XmlTree): string {
  if (!isName(name)) throw usage(`${JSON.stringify(name)} is not a valid name of an XML element`);
  let tag = `<${name}`;
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined) continue;
    if (!isName(key)) throw usage(`${JSON.stringify(key)} is not a valid name of an XML attribute`);
    tag += ` ${key}="${escaped(`${name} ${key}`, value)}"`;
  }
  const inner = typeof content === 'string' ? escaped(name, content) : content.map(write).join('');
  return inner === '' ? `${tag}/>` : `${tag}>${inner}</${name}>`;
}

/** Writes a document in UTF-8. @throws CatchwordError USAGE for a character that XML cannot have, naming its place */
export function writeXml(root: XmlTree): string {
  return `<?xml version="1.0" encoding="UTF-8"?>\n${write(root)}`;
}
