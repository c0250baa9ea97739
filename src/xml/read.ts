import { XmlElement as ParsedElement, parseXml, type XmlNode } from '@rgrove/parse-xml';
import { CatchwordError, messageOf } from '../errors.ts';
import { checkXml, MAX_XML_CHARS, xmlError } from './gate.ts';

/** A parsed element. Its text joins its own text nodes, trimmed. */
export interface XmlElement {
  readonly name: string;
  readonly attributes: ReadonlyMap<string, string>;
  readonly children: readonly XmlElement[];
  readonly text: string;
}

/** Characters of the parser's message, which may repeat the text. */
const MAX_MESSAGE = 100;

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
 * Parses the elements at the top of a text. XML has one; some services omit it and send its children. The order of
 * attributes, white space, comments and self-closing tags make no difference.
 * @throws CatchwordError XML_INVALID: not well-formed, with a DOCTYPE, too large or nested too deep
 */
export function readXml(document: string): XmlElement[] {
  if (document.length > MAX_XML_CHARS) throw xmlError(`the XML is longer than ${MAX_XML_CHARS} characters`);
  // XML 1.0, section 2.11. The parser does the same a thousand times slower.
  const lines = document.trim().replaceAll('\r\n', '\n').replaceAll('\r', '\n');
  const body = lines.replace(/^<\?xml\s[^<>]*\?>/, '');
  checkXml(body);
  try {
    const { root } = parseXml(`<top>${body}</top>`);
    return root === null ? [] : [...elementFrom(root).children];
  } catch (error) {
    if (error instanceof CatchwordError) throw error;
    // The other lines repeat the text, which may contain a token.
    throw xmlError(`the XML is not well-formed: ${messageOf(error).split('\n')[0]?.slice(0, MAX_MESSAGE)}`);
  }
}
