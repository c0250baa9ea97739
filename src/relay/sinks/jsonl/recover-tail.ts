import { open } from 'node:fs/promises';
import { systemCodeOf } from '../../../base/errors.ts';
import type { Mark } from '../../sink.ts';
import { isDamage, type LastEvent, parseEvent } from './read-tail.ts';

/*
 * Lines that were written but never confirmed may be in the kernel's memory only: the process ended before their sync, or
 * the sync failed, and then the kernel may never write them. After a power failure, some of
 * their sectors may be zeros, also in the middle, although later ones are there. So before such lines count, they are read,
 * cut off from the first damaged one on, written again and synced.
 */

const FIRST_STEP = 64 * 1024;
/** More than what a relay delivers between two confirmations. Bounds the work if nothing is confirmed, as after a replay. */
const MOST = 64 * 1024 * 1024;
const LINE_BREAK = 10;

function eventOf(path: string, line: string): LastEvent | null {
  try {
    return parseEvent(path, line);
  } catch {
    return null;
  }
}

/**
 * @param tail the end of a file, from the start of a line on
 * @returns offsets in `tail`: where the lines that are not confirmed start, and where they are damaged (or its length)
 */
function inspect(path: string, tail: Buffer, { incarnation, cursor }: Mark) {
  let start = 0;
  let soundTo = tail.length;
  let hasConfirmed = false;
  for (let at = 0; at < tail.length; ) {
    const lineEnd = tail.indexOf(LINE_BREAK, at);
    const end = lineEnd === -1 ? tail.length : lineEnd + 1;
    const line = tail.toString('utf8', at, lineEnd === -1 ? end : lineEnd);
    const event = eventOf(path, line);
    if (event?.incarnation === incarnation && event.cursor <= cursor) {
      [start, soundTo, hasConfirmed] = [end, tail.length, true];
    } else if (event === null && soundTo === tail.length && isDamage(line)) soundTo = at;
    at = end;
  }
  return { start, soundTo, hasConfirmed };
}

/**
 * Makes the events after the last confirmed one durable, and cuts off what a power failure has damaged. A file that does
 * not end like a file of catchword is left alone.
 * @param confirmed the position that the mirror knows
 */
export async function secureEnd(path: string, confirmed: Mark): Promise<void> {
  const file = await open(path, 'r+').catch((error: unknown) => {
    if (systemCodeOf(error) === 'ENOENT') return null;
    throw error;
  });
  if (file === null) return;
  try {
    const { size } = await file.stat();
    for (let step = FIRST_STEP; ; step *= 4) {
      const from = Math.max(0, size - Math.min(step, MOST));
      const bytes = Buffer.alloc(size - from);
      const { bytesRead } = await file.read(bytes, 0, bytes.length, from);
      const skipped = from === 0 ? 0 : bytes.indexOf(LINE_BREAK) + 1;
      const tail = bytes.subarray(skipped, bytesRead);
      const { start, soundTo, hasConfirmed } = inspect(path, tail, confirmed);
      if (!hasConfirmed && from > 0 && step < MOST) continue;
      if (start === tail.length) return;
      for (let at = start; at < soundTo; ) {
        at += (await file.write(tail, at, soundTo - at, from + skipped + at)).bytesWritten;
      }
      if (soundTo < tail.length) await file.truncate(from + skipped + soundTo);
      await file.datasync();
      return;
    }
  } finally {
    await file.close();
  }
}
