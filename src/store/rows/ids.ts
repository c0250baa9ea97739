/** Added to the digest of a content that does not count, because the list shows the product in front, and otherwise. */
export const BEHIND = 2 ** 32;

/**
 * Encodes a page's product ids, in order, as a compact blob: each as its difference from the previous id, in zigzag and
 * LEB128. Most products of one page were created together, so most ids take one byte. They are from 0 to 2^31 - 1.
 * A negative number, down to -2^33, is the digest of what the page shows of the product before it (`decodeShown`).
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

function decode(bytes: Uint8Array, take: (id: number) => void): void {
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
    take(id);
    value = 0;
    scale = 1;
  }
}

/** The ids, without digests. */
export function decodeIds(bytes: Uint8Array): number[] {
  const ids: number[] = [];
  decode(bytes, (id) => id >= 0 && ids.push(id));
  return ids;
}

/** The products that have a digest, with their digests. */
export function decodeShown(bytes: Uint8Array): ReadonlyMap<number, number> {
  const shown = new Map<number, number>();
  let product = 0;
  decode(bytes, (id) => {
    if (id < 0) shown.set(product, -id);
    else product = id;
  });
  return shown;
}
