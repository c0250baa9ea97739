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
 * Names who fed a store, for `incarnation` of its mark: the mirror's random id, the id of the sink's row, and whether the
 * store has every product whole. Two sinks of one mirror must not share a store: each would remove what the other has
 * delivered. A sink's name may move to another store; the id of its row does not, and is not assigned again.
 */
export function feederName(incarnation: string, sink: number, isWhole: boolean): string {
  return `${incarnation}/${sink}/${isWhole ? 'whole' : 'part'}`;
}

/**
 * Returns the mirror that fed a store and, if the mark names it, the row of its sink.
 * `isPart`: the store may have something else of a product than the whole of it, because that sink has a view or had one.
 */
export function feederOf({ incarnation }: Pick<Mark, 'incarnation'>) {
  const [mirror = '', sink, has] = incarnation.split('/');
  return { mirror, sink: has === undefined ? undefined : Number(sink), isPart: has === 'part' };
}

/** Whether the same mirror fed a store, by whichever sink. @param found the store's mark @param own the mark of this sink */
export function isOfOwnMirror(found: Mark, own: Mark): boolean {
  return feederOf(found).mirror === feederOf(own).mirror;
}

/** Whether another sink of the same mirror fed a store, or an unknown one. */
export function isOfOtherSink(found: Mark, own: Mark): boolean {
  return isOfOwnMirror(found, own) && feederOf(found).sink !== feederOf(own).sink;
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
