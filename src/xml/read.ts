import { XmlElement as ParsedElement, parseXml, type XmlNode } from '@rgrove/parse-xml';
import { CatchwordError, messageOf } from '../errors.ts';

/*
 * The gate in front of the XML parser. What it lets through has no DOCTYPE, and so no entities but the five of XML itself
 * and references to characters; it is of bounded size, number of tags and depth. Order of attributes, white space,
 * comments and whether an element closes itself make no difference in what comes out.
 */

/** An element as it is read. Text is that of all its own text nodes together, trimmed. */
export interface XmlElement {
  readonly name: string;
  readonly attributes: ReadonlyMap<string, string>;
  readonly children: readonly XmlElement[];
  readonly text: string;
}

/** Characters. For safety: ten thousand credentials with long references are about 4 million. */
export const MAX_XML_CHARS = 6 * 2 ** 20;
/** Tags, closing ones included. For safety: each takes memory of its own. */
const MAX_TAGS = 30_000;
/** Characters from one tag to the next. For safety: an attribute that does not end costs forty times its length. */
const MAX_PIECE = 65_536;
/** For safety: each attribute takes memory of its own. Ten thousand credentials have fifty thousand. */
const MAX_EQUALS = 200_000;
/** For safety: each reference is looked up by itself. */
const MAX_REFERENCES = 100_000;
/** For safety: the interface nests two deep. */
const MAX_DEPTH = 16;

function refuse(message: string, cause?: unknown): CatchwordError {
  return new CatchwordError('XML_INVALID', message, { cause });
}

/** Looks through the text once, without taking it apart. */
function checkSizes(text: string): void {
  let tags = 0;
  for (let at = 0, next = 0; next !== -1; at = next + 1) {
    next = text.indexOf('<', at);
    if ((next === -1 ? text.length : next) - at > MAX_PIECE) {
      throw refuse(`the XML has a tag or a text longer than ${MAX_PIECE} characters`);
    }
    if (++tags > MAX_TAGS) throw refuse(`the XML has more than ${MAX_TAGS} tags`);
  }
}

function checkCount(text: string, character: string, max: number): void {
  let count = 0;
  for (let at = text.indexOf(character); at !== -1; at = text.indexOf(character, at + 1)) {
    if (++count > max) throw refuse(`the XML has more than ${max} times “${character}”`);
  }
}

function elementFrom(parsed: ParsedElement, depth: number): XmlElement {
  if (depth > MAX_DEPTH) throw refuse(`the XML is nested deeper than ${MAX_DEPTH} levels`);
  const children: XmlElement[] = [];
  let text = '';
  for (const node of parsed.children as readonly (XmlNode & { readonly text?: string })[]) {
    if (node instanceof ParsedElement) children.push(elementFrom(node, depth + 1));
    else if (node.type === 'text' || node.type === 'cdata') text += node.text ?? '';
  }
  return { name: parsed.name, attributes: new Map(Object.entries(parsed.attributes)), children, text: text.trim() };
}

/**
 * The elements at the top of a text. XML has one; services have been seen that leave it out and send its children.
 *
 * @throws CatchwordError XML_INVALID: not well-formed, with a DOCTYPE, too large or nested too deep
 */
export function readXml(document: string): XmlElement[] {
  const text = document.trim();
  if (text.length > MAX_XML_CHARS) throw refuse(`the XML is longer than ${MAX_XML_CHARS} characters`);
  if (/<!DOCTYPE/i.test(text)) throw refuse('the XML has a DOCTYPE, which is not taken');
  checkSizes(text);
  checkCount(text, '=', MAX_EQUALS);
  checkCount(text, '&', MAX_REFERENCES);
  // XML 1.0, section 2.11. The parser would do the same, a thousand times slower.
  const lines = text.replaceAll('\r\n', '\n').replaceAll('\r', '\n');
  const body = lines.replace(/^\ufeff?\s*<\?xml\s[^<>]*\?>/, '');
  try {
    const { root } = parseXml(`<top>${body}</top>`);
    return root === null ? [] : [...elementFrom(root, 0).children];
  } catch (error) {
    if (error instanceof CatchwordError) throw error;
    if (error instanceof RangeError) throw refuse('the XML is nested too deep', error);
    // Its first line says what and where; the others repeat the text, which may hold a token.
    throw refuse(`the XML is not well-formed: ${messageOf(error).split('\n')[0]}`);
  }
}
