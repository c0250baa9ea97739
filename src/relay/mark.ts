import { z } from 'zod';
import type { Mark } from './sink.ts';

/** A mark as a store gives it back: many have only text. */
export const markSchema = z.object({
  incarnation: z.string(),
  generation: z.coerce.number().int(),
  cursor: z.coerce.number().int(),
  late: z.coerce.number().int(),
});

export function isSameMark(a: Mark | null, b: Mark | null): boolean {
  if (a === null || b === null) return a === b;
  const isSamePlace = a.generation === b.generation && a.cursor === b.cursor && a.late === b.late;
  return isSamePlace && a.incarnation === b.incarnation;
}
