import type { FileHandle } from 'node:fs/promises';

/** The end of a file of lines. */
export interface FileTail {
  /** Up to and with the last line break, in bytes. */
  readonly size: number;
  /** The last whole line; null where there is none. */
  readonly line: string | null;
  /** Whether something that is no whole line follows. */
  readonly torn: boolean;
}

const STEP = 64 * 1024;
const LINE_BREAK = 10;

/** Reads backwards, so that the cost is the length of the last line and not of the file. */
export async function lastLine(file: FileHandle): Promise<FileTail> {
  const { size: whole } = await file.stat();
  let from = whole;
  let tail = Buffer.alloc(0);
  for (;;) {
    const lineEnd = tail.lastIndexOf(LINE_BREAK);
    const lineStart = lineEnd <= 0 ? -1 : tail.lastIndexOf(LINE_BREAK, lineEnd - 1);
    if (from === 0 || lineStart !== -1) {
      const size = from + lineEnd + 1;
      const line = lineEnd === -1 ? null : tail.toString('utf8', lineStart + 1, lineEnd);
      return { size, line, torn: size < whole };
    }
    const step = Math.min(STEP, from);
    from -= step;
    const piece = Buffer.alloc(step);
    const { bytesRead } = await file.read(piece, 0, step, from);
    tail = Buffer.concat([piece.subarray(0, bytesRead), tail]);
  }
}
