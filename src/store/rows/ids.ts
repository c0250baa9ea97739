/**
 * Encodes a page's product ids, in order, as a compact blob: each as its difference from the previous id, in zigzag and
 * LEB128. Most products of one page were created together, so most ids take one byte. They are from 0 to 2^31 - 1.
 */
export function encodeIds(ids: readonly number[]): Buffer {
  const bytes = Buffer.allocUnsafe(ids.length * 5);
  let size = 0;
  let previous = 0;
  for (const id of ids) {
    const step = id - previous;
    previous = id;
    // A shift would overflow 32 bits.
    let rest = step < 0 ? -2 * step - 1 : 2 * step;
    while (rest > 127) {
      bytes[size++] = (rest % 128) + 128;
      rest = Math.floor(rest / 128);
    }
    bytes[size++] = rest;
  }
  return Buffer.from(bytes.subarray(0, size));
}

export function decodeIds(bytes: Uint8Array): number[] {
  const ids: number[] = [];
  let id = 0;
  let value = 0;
  let scale = 1;
  // By index: `for of` a buffer takes twice the time, and a run decodes the ids of each page two or three times.
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0;
    value += (byte % 128) * scale;
    scale *= 128;
    if (byte > 127) continue;
    id += value % 2 === 0 ? value / 2 : -(value + 1) / 2;
    ids.push(id);
    value = 0;
    scale = 1;
  }
  return ids;
}
