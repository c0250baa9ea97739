import { readFile } from 'node:fs/promises';
import * as z from 'zod';
import type { Mark } from '../../sink.ts';
import { markSchema } from '../../stored-mark.ts';
import type { LastEvent } from './read-tail.ts';

/** `offset` and `cursor`: size of the file and cursor when this was written. */
const stateSchema = markSchema.omit({ late: true }).extend({ offset: z.number() });

/** Where in the file the current generation starts: a replay appends events with smaller numbers. */
export type GenerationState = z.output<typeof stateSchema>;

/** @returns null if the file is missing or damaged */
export async function readState(path: string): Promise<GenerationState | null> {
  try {
    return stateSchema.parse(JSON.parse(await readFile(path, 'utf8')));
  } catch {
    return null;
  }
}

/**
 * Decides how far a file is.
 * @param mark what the mirror believes
 * @param state null if the file was never replayed, or its state was lost
 * @param size of the file, bytes
 * @param end null for an empty file
 */
export function markOf(mark: Mark, state: GenerationState | null, size: number, end: LastEvent | null): Mark {
  if (state === null) return end === null ? { ...mark, late: 0 } : { ...end, generation: 1, late: 0 };
  const { incarnation, generation, offset, cursor, at } = state;
  const noted: Mark = { incarnation, generation, cursor, at, late: 0 };
  // The file was rotated or removed: it does not have an event of this generation yet.
  if (end === null) {
    const isBehind = incarnation === mark.incarnation && cursor < mark.cursor;
    return isBehind ? { ...mark, generation, late: 0 } : noted;
  }
  // Shorter than when the generation started: it lost earlier events as well.
  if (size < offset && end.cursor < cursor) return { ...noted, ...end };
  if (size <= offset) return noted;
  return end.cursor <= cursor ? { ...noted, late: end.cursor } : { ...noted, ...end };
}
