import { XmlElement as ParsedElement, parseXml, type XmlNode } from '@rgrove/parse-xml';
import { CatchwordError, messageOf } from '../errors.ts';
import { checkXml, MAX_XML_CHARS, refuseXml } from './gate.ts';

/** An element as it is read. Text is that of all its own text nodes together, trimmed. */
export interface XmlElement {
  readonly name: string;
  readonly attributes: ReadonlyMap<string, string>;
  readonly children: readonly XmlElement[];
  readonly text: string;
}

/** Characters of what the parser says; it may repeat what it read. */
const MAX_SAID = 100;

function elementFrom(parsed: ParsedElement): XmlElement {
  const children: XmlElement[] = [];
  let text = '';
  for (const node of parsed.children as readonly (XmlNode & { readonly text?: string })[]) {
    if (node instanceof ParsedElement) children.push(elementFrom(node));
    else if (node.type === 'text' || node.type === 'cdata') text += node.text ?? '';
  }
  return { name: parsed.name, attributes: new Map(Object.entries(parsed.attributes)), children, text: text.trim() };
}

/**
 * The elements at the top of a text. XML has one; services have been seen that leave it out and send its children. Order
 * of attributes, white space, comments and whether an element closes itself make no difference in what comes out.
 *
 * @throws CatchwordError XML_INVALID: not well-formed, with a DOCTYPE, too large or nested too deep
 */
export function readXml(document: string): XmlElement[] {
  if (document.length > MAX_XML_CHARS) throw refuseXml(`the XML is longer than ${MAX_XML_CHARS} characters`);
  // XML 1.0, section 2.11. The parser would do the same, a thousand times slower.
  const lines = document.trim().replaceAll('\r\n', '\n').replaceAll('\r', '\n');
  const body = lines.replace(/^<\?xml\s[^<>]*\?>/, '');
  checkXml(body);
  try {
    const { root } = parseXml(`<top>${body}</top>`);
    return root === null ? [] : [...elementFrom(root).children];
  } catch (error) {
    if (error instanceof CatchwordError) throw error;
    // Its first line says what and where; the others repeat the text, which may hold a token.
    throw refuseXml(`the XML is not well-formed: ${messageOf(error).split('\n')[0]?.slice(0, MAX_SAID)}`);
  }
}
