import { CatchwordError } from '../../errors.ts';
import { readXml, type XmlElement } from '../../xml/read.ts';

function invalid(message: string): CatchwordError {
  return new CatchwordError('XML_INVALID', message);
}

/** Strictly UTF-8: another encoding read as UTF-8 would be other text. */
function decoded(body: Buffer): string {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch {
    throw invalid('the body is not UTF-8');
  }
  const [, encoding = 'utf-8'] = /^\s*<\?xml\s[^<>]*?encoding\s*=\s*["']([^"'<>]*)["']/.exec(text) ?? [];
  if (!/^utf-?8$/i.test(encoding)) throw invalid('the XML is declared in another encoding than UTF-8');
  return text;
}

/**
 * The one element of a request's body.
 * @throws CatchwordError XML_INVALID: not UTF-8, refused by the gate (see `readXml`), or with another root than `root`
 */
export function readXmlBody(body: Buffer, root: string): XmlElement {
  const elements = readXml(decoded(body));
  const [element] = elements;
  if (element === undefined || elements.length > 1 || element.name !== root) {
    throw invalid(`one element ${root} is needed`);
  }
  return element;
}
