import { isUtf8 } from 'node:buffer';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { badByteIn, textOfBytes } from '../../src/catalog/byte-text.ts';

const text = fc.string({ unit: 'grapheme' });

/** Restores the bytes that `textOfBytes` decoded. */
function bytesOfText(made: string): Buffer {
  const parts = made.split(/(\p{Cs})/u);
  return Buffer.concat(
    parts.map((part, at) => (at % 2 === 0 ? Buffer.from(part) : Buffer.of(part.charCodeAt(0) - 0xdc00))),
  );
}

it('byte text decodes any bytes to text that encodes to the same bytes', () => {
  const mixed = fc
    .array(
      fc.oneof(
        fc.uint8Array({ maxLength: 6 }),
        text.map((part) => Buffer.from(part)),
      ),
      { maxLength: 8 },
    )
    .map((parts) => Buffer.concat(parts));
  fc.assert(
    fc.property(mixed, (bytes) => {
      const made = textOfBytes(bytes);
      expect(bytesOfText(made).equals(bytes)).toBe(true);
      expect(made.isWellFormed()).toBe(isUtf8(bytes));
      // Valid UTF-8 is decoded as a standard decoder does.
      if (isUtf8(bytes)) expect(made).toBe(bytes.toString('utf8'));
    }),
    { numRuns: 2_000 },
  );
});

it.each([
  ['a Latin-1 letter', [0x61, 0xe9, 0x22], 'a\udce9"'],
  ['a sequence that is cut short', [0xe2, 0x82], '\udce2\udc82'],
  ['a surrogate', [0xed, 0xa0, 0x80], '\udced\udca0\udc80'],
  ['an overlong form', [0xc0, 0xaf, 0xe0, 0x80, 0x80], '\udcc0\udcaf\udce0\udc80\udc80'],
  ['a character beyond Unicode', [0xf4, 0x90, 0x80, 0x80], '\udcf4\udc90\udc80\udc80'],
  ['the last character of Unicode', [0xf4, 0x8f, 0xbf, 0xbf], '\u{10ffff}'],
])('byte text escapes %s byte by byte', (_name, bytes, expected) => {
  expect(textOfBytes(Uint8Array.from(bytes))).toBe(expected);
});

it('byte text finds the first byte that is not UTF-8', () => {
  expect(badByteIn(textOfBytes(Buffer.from('€uro\xe9', 'utf8')))).toBeNull();
  expect(badByteIn(textOfBytes(Buffer.concat([Buffer.from('€uro'), Buffer.of(0xe9)])))).toEqual({
    byte: 0xe9,
    at: 4,
  });
});
