import type { Random } from '@catchword/sandbox/catalog/random';

const MAX_BYTES = 4096;
/** Pieces with a meaning in one of the formats. */
const PIECES = [
  ...String.raw`{ } [ ] " \ : , 1e999 -0 0.10 null true \ud800 \u0000 __proto__`.split(' '),
  ...'< > /> </ &amp; &#0; &#x10ffff; <![CDATA[ ]]> <!-- --> <?xml <error code="601"/>'.split(' '),
  ...'"vbid": "items": "total_pages": "errors": "code": ; \t \r\n \n \r "" \0 \u{feff}'.split(' '),
  ...'% %2f %00 @ # ? & = // .. / ~1 ~01 * - + ß \u{1f600} \u202e'.split(' '),
  ' ',
].map((piece) => Buffer.from(piece));
const BYTES = [0, 0x7f, 0x80, 0xc0, 0xe2, 0xed, 0xf0, 0xff];

/** Changes an input in one to eight places; `other` is an input to take pieces from. */
export function mutated(input: Buffer, other: Buffer, random: Random): Buffer {
  const below = (bound: number): number => Math.floor(random() * bound);
  const pick = <T>(choices: readonly T[], fallback: T): T => choices[below(choices.length)] ?? fallback;
  let bytes = input;
  for (let left = 1 + below(8); left > 0; left--) {
    const from = below(bytes.length + 1);
    const to = Math.min(bytes.length, from + below(random() < 0.2 ? 64 : 4));
    const start = below(other.length + 1);
    const inserted = pick(
      [
        Buffer.alloc(0),
        Buffer.of(below(256)),
        Buffer.of(pick(BYTES, 0)),
        pick(PIECES, Buffer.alloc(0)),
        other.subarray(start, start + below(64)),
        bytes.subarray(from, from + below(64)),
      ],
      Buffer.alloc(0),
    );
    const keeps = random() < 0.5;
    bytes = Buffer.concat([bytes.subarray(0, from), inserted, bytes.subarray(keeps ? from : to)]);
  }
  return bytes.subarray(0, MAX_BYTES);
}
