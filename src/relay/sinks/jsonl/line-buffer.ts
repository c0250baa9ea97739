import type { SinkEvent } from '../../sink.ts';

/** At most so many bytes a character of a string take in UTF-8. */
const BYTES_A_CHAR = 3;
const FIRST_SIZE = 1 << 20;
const LINE_BREAK = 10;

/**
 * Makes the bytes of lines in memory that is used again and again: strings that are joined first and encoded then take
 * half as long again.
 * @returns a function whose result is valid until it is called again
 */
export function createLineWriter(): (events: readonly SinkEvent[]) => Buffer {
  let bytes = Buffer.allocUnsafe(FIRST_SIZE);
  return (events) => {
    let size = 0;
    for (const { text } of events) {
      const needed = size + text.length * BYTES_A_CHAR + 1;
      if (needed > bytes.length) {
        const larger = Buffer.allocUnsafe(2 * needed);
        bytes.copy(larger, 0, 0, size);
        bytes = larger;
      }
      size += bytes.write(text, size);
      bytes[size++] = LINE_BREAK;
    }
    return bytes.subarray(0, size);
  };
}
