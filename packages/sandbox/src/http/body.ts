import type { IncomingMessage } from 'node:http';
import { CatchwordError } from '@catchword/base/errors';
import { readXml, type XmlElement } from '@catchword/xml/read';
import { CODES, codeRejection, Rejection } from './reply.ts';

/** Reads a body, to its end if it is too long: a broken connection would hide the reply. @throws Rejection 413 */
export async function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of request) {
    bytes += (piece as Buffer).length;
    if (bytes > maxBytes) pieces.length = 0;
    else pieces.push(piece as Buffer);
  }
  if (bytes > maxBytes) throw new Rejection(413, `the body is longer than ${maxBytes} bytes`);
  return Buffer.concat(pieces);
}

/** Returns the text without a byte order mark, or null if it is not strictly UTF-8. */
function decode(body: Buffer): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch {
    return null;
  }
}

/** @throws Rejection 422 */
export function parseJson(body: Buffer): unknown {
  const text = decode(body);
  if (text === null) throw new Rejection(422, 'body: is not UTF-8');
  if (text.trim() === '') throw new Rejection(422, 'body: is empty');
  try {
    return JSON.parse(text);
  } catch {
    throw new Rejection(422, 'body: is not JSON');
  }
}

/** The error of an XML request that cannot be read as a whole. */
export function malformed(root: string, message: string): Rejection {
  return codeRejection(400, CODES.malformed, `Malformed ${root} request: ${message}`);
}

/** Returns the root element of an XML body. @throws Rejection 400 with code 650 */
export function parseXml(body: Buffer, root: string): XmlElement {
  const text = decode(body);
  if (text === null) throw malformed(root, 'the body is not UTF-8');
  const [, encoding = 'utf-8'] = /^\s*<\?xml\s[^<>]*?encoding\s*=\s*["']([^"'<>]*)["']/.exec(text) ?? [];
  if (!/^utf-?8$/i.test(encoding)) throw malformed(root, 'the XML declares an encoding other than UTF-8');
  try {
    const elements = readXml(text);
    const [element] = elements;
    if (elements.length === 1 && element?.name === root) return element;
  } catch (error) {
    if (error instanceof CatchwordError) throw malformed(root, error.message);
    throw error;
  }
  throw malformed(root, `the body must be one element ${root}`);
}
