import * as z from 'zod';
import type { Mark, Opened } from './sink.ts';

/** A mark as a store returns it. Many stores return every field as text. */
export const markSchema = z.object({
  incarnation: z.string(),
  generation: z.coerce.number().int().min(1),
  cursor: z.coerce.number().int().min(0),
  at: z.coerce.number().int().min(0),
  late: z.coerce.number().int().min(0),
});

/**
 * Names who fed a store, for `incarnation` of its mark: the mirror's random id, a slash, and the sink. Two sinks of one
 * mirror must not share a store: each would remove what the other has delivered.
 */
export function feederName(incarnation: string, sink: string): string {
  return `${incarnation}/${sink}`;
}

/** The mirror, and the sink if the mark names it, that fed a store. */
export function feederOf({ incarnation }: Pick<Mark, 'incarnation'>) {
  const [mirror = '', sink] = incarnation.split('/');
  return { mirror, sink };
}

/** Whether another sink of the same mirror fed a store. @param found its mark @param own the mark of this sink */
export function isOfOtherSink(found: Mark, own: Mark): boolean {
  return found.incarnation !== own.incarnation && feederOf(found).mirror === feederOf(own).mirror;
}

/** Returns the mark before the first delivery. */
export function markAtStart(mark: Mark): Mark {
  const { incarnation, generation } = mark;
  return { incarnation, generation, cursor: 0, at: 0, late: 0 };
}

/** Returns the position of a store of products that has nothing. @param mark what the mirror believes @param reason for the log */
export function emptyPosition(mark: Mark, reason: string): Opened {
  const start = markAtStart(mark);
  return mark.cursor > 0 ? { ...start, refill: reason } : start;
}

export function isSameMark(a: Mark | null, b: Mark | null): boolean {
  if (a === null || b === null) return a === b;
  const isSamePlace = a.generation === b.generation && a.cursor === b.cursor && a.late === b.late;
  return isSamePlace && a.incarnation === b.incarnation;
}
