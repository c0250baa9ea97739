/**
 * Decodes any bytes to text that can be encoded to the same bytes again.
 *
 * Valid UTF-8 is decoded as usual. Every other byte becomes the lone surrogate U+DC00 plus its value, which valid UTF-8
 * never decodes to (Python calls this `surrogateescape`). So one Latin-1 character invalidates only the item it is in,
 * not the page, and text that is well-formed came from valid UTF-8.
 */

const ESCAPE = 0xdc00;
const LONE_SURROGATE = /\p{Cs}/u;
const LONE_SURROGATES = /\p{Cs}/gu;

/** Length of the UTF-8 sequence at `at`; 0 if the bytes there are not valid UTF-8. */
function sequenceLength(bytes: Uint8Array, at: number): number {
  const lead = bytes[at] ?? 0;
  if (lead < 0x80) return 1;
  const length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || at + length > bytes.length) return 0;
  const second = bytes[at + 1] ?? 0;
  // Excludes overlong forms, surrogates and code points above U+10FFFF.
  const least = lead === 0xe0 ? 0xa0 : lead === 0xf0 ? 0x90 : 0x80;
  const most = lead === 0xed ? 0x9f : lead === 0xf4 ? 0x8f : 0xbf;
  if (second < least || second > most) return 0;
  for (let next = at + 2; next < at + length; next++) {
    if (((bytes[next] ?? 0) & 0xc0) !== 0x80) return 0;
  }
  return length;
}

/** Decodes bytes to text and escapes each byte that is not valid UTF-8. */
export function textOfBytes(bytes: Uint8Array): string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const parts: string[] = [];
  let from = 0;
  for (let at = 0; at < buffer.length; ) {
    const length = sequenceLength(buffer, at);
    if (length === 0) {
      parts.push(buffer.toString('utf8', from, at), String.fromCharCode(ESCAPE + (buffer[at] ?? 0)));
      from = at + 1;
    }
    at += Math.max(1, length);
  }
  parts.push(buffer.toString('utf8', from));
  return parts.join('');
}

/** Restores the bytes that `textOfBytes` decoded. */
export function bytesOfText(text: string): Buffer {
  if (text.isWellFormed()) return Buffer.from(text, 'utf8');
  const parts: Buffer[] = [];
  let from = 0;
  for (const { index } of text.matchAll(LONE_SURROGATES)) {
    parts.push(Buffer.from(text.slice(from, index), 'utf8'), Buffer.of((text.charCodeAt(index) - ESCAPE) & 0xff));
    from = index + 1;
  }
  parts.push(Buffer.from(text.slice(from), 'utf8'));
  return Buffer.concat(parts);
}

/** The first escaped byte, and the number of characters before it; null if the text came from valid UTF-8. */
export function badByteIn(text: string): { readonly byte: number; readonly at: number } | null {
  const at = text.search(LONE_SURROGATE);
  return at === -1 ? null : { byte: (text.charCodeAt(at) - ESCAPE) & 0xff, at };
}
