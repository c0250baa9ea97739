import { isUtf8 } from 'node:buffer';

/**
 * Decodes any bytes to text.
 *
 * Every byte that is not valid UTF-8 becomes the lone surrogate U+DC00 plus its value, which valid UTF-8 never decodes
 * to: so it can be named.
 */

const ESCAPE = 0xdc00;
const LONE_SURROGATE = /\p{Cs}/u;

/** A valid sequence of UTF-8 beyond ASCII (RFC 3629, section 4), or any other byte beyond ASCII. One character a byte. */
const BEYOND_ASCII = new RegExp(
  [
    '[\\xc2-\\xdf][\\x80-\\xbf]',
    '\\xe0[\\xa0-\\xbf][\\x80-\\xbf]|[\\xe1-\\xec\\xee\\xef][\\x80-\\xbf]{2}|\\xed[\\x80-\\x9f][\\x80-\\xbf]',
    '\\xf0[\\x90-\\xbf][\\x80-\\xbf]{2}|[\\xf1-\\xf3][\\x80-\\xbf]{3}|\\xf4[\\x80-\\x8f][\\x80-\\xbf]{2}',
    '[\\x80-\\xff]',
  ].join('|'),
  'g',
);

/** Decodes bytes to text and escapes each byte that is not valid UTF-8. */
export function textOfBytes(bytes: Uint8Array): string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (isUtf8(buffer)) return buffer.toString('utf8');
  return buffer
    .toString('latin1')
    .replace(BEYOND_ASCII, (sequence) =>
      sequence.length === 1
        ? String.fromCharCode(ESCAPE + sequence.charCodeAt(0))
        : Buffer.from(sequence, 'latin1').toString('utf8'),
    );
}

/** The first escaped byte, and the number of characters before it; null if the text came from valid UTF-8. */
export function badByteIn(text: string): { readonly byte: number; readonly at: number } | null {
  const at = text.search(LONE_SURROGATE);
  return at === -1 ? null : { byte: (text.charCodeAt(at) - ESCAPE) & 0xff, at };
}
