import { CatchwordError } from '@catchword/base/errors';
import { XmlElement as ParsedElement, parseXml, XmlError, type XmlNode } from '@rgrove/parse-xml';

/** A parsed element. Its text joins its own text nodes, trimmed. */
export interface XmlElement {
  readonly name: string;
  readonly attributes: ReadonlyMap<string, string>;
  readonly children: readonly XmlElement[];
  readonly text: string;
}

/*
 * The limits are for safety: within them, no text costs the parser much more than ten thousand credentials, each returned
 * twice, which have about 5 million characters, 40,002 tags and 120,000 attributes.
 */
export const MAX_XML_CHARS = 6 * 2 ** 20;
/** Each tag (closing ones included), attribute and reference takes memory of its own. */
const MAX_COUNTS = { '<': 50_000, '=': 200_000, '&': 100_000 };
/** Characters from one tag to the next. */
const MAX_PIECE = 65_536;
const LONG_PIECE = new RegExp(`(?:^|<)[^<]{${MAX_PIECE + 1}}`);
/** The interface nests two deep. */
const MAX_DEPTH = 16;

function xmlError(message: string): CatchwordError {
  const hint = 'Retry; if the error persists, the service or a proxy sends invalid XML.';
  return new CatchwordError('XML_INVALID', message, { hint });
}

/** @throws CatchwordError XML_INVALID for a DOCTYPE, and so for all entities except the five of XML, and beyond a limit */
function checkLimits(text: string): void {
  if (text.length > MAX_XML_CHARS) throw xmlError(`the XML is longer than ${MAX_XML_CHARS} characters`);
  if (/<!DOCTYPE/i.test(text)) throw xmlError('the XML has a DOCTYPE, which is not allowed');
  if (LONG_PIECE.test(text)) throw xmlError(`the XML has a tag or a text longer than ${MAX_PIECE} characters`);
  for (const [character, max] of Object.entries(MAX_COUNTS)) {
    let count = 0;
    for (let at = text.indexOf(character); at !== -1; at = text.indexOf(character, at + 1)) {
      if (++count > max) throw xmlError(`the XML has more than ${max} times “${character}”`);
    }
  }
}

function elementFrom(parsed: ParsedElement, depth = 0): XmlElement {
  if (depth > MAX_DEPTH) throw xmlError(`the XML is nested deeper than ${MAX_DEPTH} levels`);
  const children: XmlElement[] = [];
  let text = '';
  for (const node of parsed.children as readonly (XmlNode & { readonly text?: string })[]) {
    if (node instanceof ParsedElement) children.push(elementFrom(node, depth + 1));
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
  const text = document.trim();
  checkLimits(text);
  // XML 1.0, section 2.11. The parser does the same a thousand times slower.
  const lines = text.replaceAll('\r\n', '\n').replaceAll('\r', '\n');
  try {
    const { root } = parseXml(`<top>${lines.replace(/^<\?xml\s[^<>]*\?>/, '')}</top>`);
    return root === null ? [] : [...elementFrom(root).children];
  } catch (error) {
    if (error instanceof CatchwordError) throw error;
    // The parser's message may repeat a token. Anything else is a stack that overflowed, from deep nesting.
    throw xmlError(`the XML is not well-formed${error instanceof XmlError ? ` (line ${error.line})` : ''}`);
  }
}
