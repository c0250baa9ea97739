import type { FileHandle } from 'node:fs/promises';
import * as z from 'zod';
import { incarnationOf } from '../../../catalog/event.ts';
import { type Mark, SinkError } from '../../sink.ts';

const STEP = 64 * 1024;
const LINE_BREAK = 10;

/**
 * Finds the last complete line; null if there is not one. Reads backwards: the cost depends on the length of the line, not
 * of the file.
 * @returns `size`: bytes up to and including its line break; `rest`: what follows, an incomplete line
 */
export async function lastLine(file: FileHandle) {
  let from = (await file.stat()).size;
  let tail = Buffer.alloc(0);
  for (;;) {
    const lineEnd = tail.lastIndexOf(LINE_BREAK);
    const lineStart = lineEnd <= 0 ? -1 : tail.lastIndexOf(LINE_BREAK, lineEnd - 1);
    if (from === 0 || lineStart !== -1) {
      const line = lineEnd === -1 ? null : tail.toString('utf8', lineStart + 1, lineEnd);
      return { size: from + lineEnd + 1, line, rest: tail.toString('utf8', lineEnd + 1) };
    }
    const step = Math.min(STEP, from);
    from -= step;
    const piece = Buffer.alloc(step);
    const { bytesRead } = await file.read(piece, 0, step, from);
    tail = Buffer.concat([piece.subarray(0, bytesRead), tail]);
  }
}

/** Position that the last event of a file names. */
export type LastEvent = Pick<Mark, 'incarnation' | 'cursor' | 'at'>;

const eventSchema = z.object({
  type: z.string().startsWith('catchword.'),
  id: z.string(),
  sequence: z.string().regex(/^\d+$/),
  time: z.iso.datetime(),
});

const EVENT_START = '{"specversion":"1.0","id":"';

function notOurs(path: string, cause?: unknown): SinkError {
  const message = `${path} does not end with an event of catchword; use another file`;
  return new SinkError('misconfigured', message, { cause });
}

/** Whether a line that is not an event may be cut off: it starts like one, or with zeros, as after a power failure. */
export function isDamage(line: string): boolean {
  return line.startsWith('\0') || EVENT_START.startsWith(line.slice(0, EVENT_START.length));
}

/**
 * Checks that an incomplete last line may be cut off.
 * @param isOurs whether catchword has written to the file: it has a complete event, or a state
 * @throws SinkError misconfigured
 */
export function checkRest(path: string, rest: string, isOurs: boolean): void {
  if (rest !== '' && !(isOurs && isDamage(rest))) throw notOurs(path);
}

/** @throws SinkError misconfigured if the line is not an event */
export function parseEvent(path: string, line: string): LastEvent {
  try {
    const { id, sequence, time } = eventSchema.parse(JSON.parse(line));
    return { incarnation: incarnationOf(id), cursor: Number(sequence), at: Date.parse(time) };
  } catch (cause) {
    throw notOurs(path, cause);
  }
}
