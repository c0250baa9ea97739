import type { FileHandle } from 'node:fs/promises';
import { z } from 'zod';
import { SinkError } from '../../sink.ts';

/** The end of a file of lines. */
export interface FileTail {
  /** Bytes up to and including the last line break. */
  readonly size: number;
  /** The last complete line; null if there is not one. */
  readonly line: string | null;
  /** Whether an incomplete line follows. */
  readonly isTorn: boolean;
}

const STEP = 64 * 1024;
const LINE_BREAK = 10;

/** Reads backwards: the cost depends on the length of the last line, not of the file. */
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
      return { size, line, isTorn: size < whole };
    }
    const step = Math.min(STEP, from);
    from -= step;
    const piece = Buffer.alloc(step);
    const { bytesRead } = await file.read(piece, 0, step, from);
    tail = Buffer.concat([piece.subarray(0, bytesRead), tail]);
  }
}

/** What the last event of a file says. */
export interface LastEvent {
  readonly incarnation: string;
  readonly seq: number;
  readonly at: number;
}

const eventSchema = z.object({ id: z.string(), sequence: z.string().regex(/^\d+$/), time: z.iso.datetime() });

/** @throws SinkError misconfigured if the line is not an event */
export function parseEvent(path: string, line: string): LastEvent {
  try {
    const { id, sequence, time } = eventSchema.parse(JSON.parse(line));
    return { incarnation: id.slice(0, id.lastIndexOf(':')), seq: Number(sequence), at: Date.parse(time) };
  } catch (cause) {
    const message = `${path} does not end with an event of catchword; use another file`;
    throw new SinkError('misconfigured', message, { cause });
  }
}
