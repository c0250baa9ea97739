/*
 * Arrays of texts as PostgreSQL reads them in binary: for each text its length and its bytes, without quotes and escapes.
 * The driver writes arrays as text: with them, a fill takes this process half as long again (measured).
 */

const HEADER_BYTES = 20;
const LENGTH_BYTES = 4;
const TYPE_TEXT = 25;
const NULL = -1;

/** Writes texts as a parameter of the type `text[]`. */
export function textArray(values: readonly (string | null)[]): Buffer {
  let bytes = HEADER_BYTES + values.length * LENGTH_BYTES;
  for (const value of values) if (value !== null) bytes += Buffer.byteLength(value);
  const array = Buffer.allocUnsafe(bytes);
  // One dimension, with nulls, of `values.length` texts, the first of which has the number 1.
  const header = [1, 1, TYPE_TEXT, values.length, 1];
  let at = 0;
  for (const word of header) at = array.writeInt32BE(word, at);
  for (const value of values) {
    const length = value === null ? NULL : array.write(value, at + LENGTH_BYTES);
    at = array.writeInt32BE(length, at) + Math.max(length, 0);
  }
  return array;
}
