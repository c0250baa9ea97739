import type { IncomingMessage } from 'node:http';

/** The whole body, or null where it is longer than `maxBytes`; the rest is read then and thrown away. */
export async function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer | null> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  // To its end even when too long: a connection broken meanwhile would hide the answer that says so.
  for await (const piece of request) {
    bytes += (piece as Buffer).length;
    if (bytes > maxBytes) pieces.length = 0;
    else pieces.push(piece as Buffer);
  }
  return bytes > maxBytes ? null : Buffer.concat(pieces);
}
