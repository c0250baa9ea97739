import { CatchwordError } from '../errors.ts';
import { isWritable } from './write.ts';

/*
 * The gate in front of the XML parser. It scans a text once and rejects what is too large, nested too deep or not
 * well-formed. The parser would detect malformed XML too, but only after it has built everything before it, at fifty times
 * the cost.
 */

/** Characters. For safety: ten thousand credentials, each returned twice, are about 5 million. */
export const MAX_XML_CHARS = 6 * 2 ** 20;
/** Tags, closing ones included. For safety: each takes memory of its own. Ten thousand credentials twice are 40,002. */
const MAX_TAGS = 50_000;
/** Characters from one tag to the next. For safety: an unterminated attribute costs forty times its length. */
const MAX_PIECE = 65_536;
const LONG_PIECE = new RegExp(`(?:^|<)[^<]{${MAX_PIECE + 1}}`);
/** For safety: each attribute takes memory of its own. Ten thousand credentials twice have 120,000. */
const MAX_EQUALS = 200_000;
/** For safety: each reference is looked up by itself. */
const MAX_REFERENCES = 100_000;
/** For safety: the interface nests two deep. */
const MAX_DEPTH = 16;

/** XML 1.0, section 2.3, without characters beyond 65,535, which have not been seen in names. */
const START =
  ':A-Z_a-z\\u00c0-\\u00d6\\u00d8-\\u00f6\\u00f8-\\u02ff\\u0370-\\u037d\\u037f-\\u1fff\\u200c\\u200d\\u2070-\\u218f' +
  '\\u2c00-\\u2fef\\u3001-\\ud7ff\\uf900-\\ufdcf\\ufdf0-\\ufffd';
const NAME = `[${START}][${START}\\-.0-9\\u00b7\\u0300-\\u036f\\u203f\\u2040]*`;
/** Section 2.3 as well; `\s` would match more. */
const SPACE = '[ \\t\\r\\n]';
const VALUE = `"[^"<]*"|'[^'<]*'`;
/** Its parts start with different characters, so it does not backtrack. */
const TAG = new RegExp(`<(/?)(${NAME})((?:${SPACE}+${NAME}${SPACE}*=${SPACE}*(?:${VALUE}))*)${SPACE}*(/?)>`, 'y');
const INSTRUCTION = new RegExp(`<\\?(?![xX][mM][lL](?:${SPACE}|\\?))${NAME}(?=${SPACE}|\\?>)`, 'y');
/** Case-sensitive: `&AMP;` and `&#X41;` are not valid. */
const REFERENCE = /&(?:(?:amp|lt|gt|quot|apos);|#(\d{1,7});|#x([\da-fA-F]{1,6});)?/g;

export function xmlError(message: string, cause?: unknown): CatchwordError {
  return new CatchwordError('XML_INVALID', message, {
    hint: 'Retry; if the error persists, the service or a proxy sends invalid XML.',
    cause,
  });
}

function broken(what: string, at: number): CatchwordError {
  return xmlError(`the XML is not well-formed: ${what} at character ${at + 1}`);
}

function checkCount(text: string, character: string, max: number, what = `times “${character}”`): void {
  let count = 0;
  for (let at = text.indexOf(character); at !== -1; at = text.indexOf(character, at + 1)) {
    if (++count > max) throw xmlError(`the XML has more than ${max} ${what}`);
  }
}

/** Accepts the five entities of XML, and references to characters that XML allows. */
function checkReferences(piece: string, at: number): void {
  if (!piece.includes('&')) return;
  for (const { 0: reference, 1: decimal, 2: hex, index } of piece.matchAll(REFERENCE)) {
    const code = Number(decimal ?? `0x${hex}`);
    const isNamed = decimal === undefined && hex === undefined && reference !== '&';
    const isCharacter = code <= 0x10ffff && isWritable(String.fromCodePoint(code));
    if (!isNamed && !isCharacter) throw broken('invalid reference', at + index);
  }
}

/** @param attributes of one tag, as matched by TAG; a second regular expression would cost ten times as much */
function checkAttributes(attributes: string, at: number): void {
  if (attributes.indexOf('=') === attributes.lastIndexOf('=') && !attributes.includes(':')) return;
  const names = new Set<string>();
  let from = 0;
  for (let equals = attributes.indexOf('='); equals !== -1; equals = attributes.indexOf('=', from)) {
    const name = attributes.slice(from, equals).trim();
    let open = equals + 1;
    while (attributes[open] !== '"' && attributes[open] !== "'") open++;
    const close = attributes.indexOf(attributes.charAt(open), open + 1);
    if (names.has(name)) throw broken('duplicate attribute', at);
    const value = attributes.slice(open + 1, close);
    if (name === 'xml:space' && !/^(?:default|preserve)$/.test(value)) throw broken('invalid xml:space', at);
    names.add(name);
    from = close + 1;
  }
}

/** @returns the end of the comment, CDATA section or instruction at `at`; undefined if there is none */
function endOfOther(text: string, at: number): number | undefined {
  if (text.startsWith('<!--', at)) {
    const end = text.indexOf('--', at + 4);
    return end !== -1 && text[end + 2] === '>' ? end + 3 : undefined;
  }
  INSTRUCTION.lastIndex = at;
  const close = text.startsWith('<![CDATA[', at) ? ']]>' : INSTRUCTION.test(text) ? '?>' : undefined;
  const end = close === undefined ? -1 : text.indexOf(close, at);
  return close === undefined || end === -1 ? undefined : end + close.length;
}

function checkText(piece: string, at: number): void {
  checkReferences(piece, at);
  if (piece.includes(']]>')) throw broken('unexpected end of a CDATA section', at);
}

function checkNesting(text: string): void {
  const open: string[] = [];
  let at = 0;
  for (let next = text.indexOf('<'); next !== -1; next = text.indexOf('<', at)) {
    checkText(text.slice(at, next), at);
    TAG.lastIndex = next;
    const [tag, end = '', name = '', attributes = '', empty = ''] = TAG.exec(text) ?? [];
    const isBroken = tag === undefined || (end !== '' && (attributes !== '' || empty !== ''));
    const until = isBroken ? endOfOther(text, next) : next + tag.length;
    if (until === undefined) throw broken('malformed or unterminated tag', next);
    if (tag !== undefined) {
      checkReferences(attributes, next);
      checkAttributes(attributes, next);
      if (end !== '' && open.pop() !== name) throw broken('unexpected end tag', next);
      if (end === '' && empty === '') open.push(name);
      if (open.length > MAX_DEPTH) throw xmlError(`the XML is nested deeper than ${MAX_DEPTH} levels`);
    }
    at = until;
  }
  checkText(text.slice(at), at);
  if (open.length > 0) throw broken('unterminated element', text.length);
}

/**
 * Accepts well-formed XML, with any number of elements at the top, and limits its tags, attributes, references and depth.
 * Rejects a DOCTYPE, and so all entities except the five of XML.
 * @throws CatchwordError XML_INVALID
 */
export function checkXml(text: string): void {
  if (/<!DOCTYPE/i.test(text)) throw xmlError('the XML has a DOCTYPE, which is not allowed');
  if (LONG_PIECE.test(text)) throw xmlError(`the XML has a tag or a text longer than ${MAX_PIECE} characters`);
  checkCount(text, '<', MAX_TAGS, 'tags');
  checkCount(text, '=', MAX_EQUALS);
  checkCount(text, '&', MAX_REFERENCES);
  if (!isWritable(text)) throw xmlError('the XML is not well-formed: it has a character that is not allowed in XML');
  checkNesting(text);
}
