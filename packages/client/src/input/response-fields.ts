import * as z from 'zod';

/*
 * Types of response fields. Services differ from the interface and from each other, so a field of an unexpected form is
 * undefined, not an error; `raw` has the answer as received.
 */

/** The text "null" has been seen instead of null. */
function orAbsent<S extends z.ZodType>(schema: S) {
  return z
    .preprocess((value) => (value === null || value === 'null' ? undefined : value), schema.optional())
    .catch(undefined)
    .optional();
}

const anyText = z.union([z.string(), z.number().transform(String)]);

/** @rule 2.2-17 */
export const textOf = orAbsent(anyText);

const decimalText = z.string().trim();
const wholeText = z.string().regex(/^-?\d{1,15}$/);

/** Keeps every digit of a number that was sent as text. */
export const decimalOf = orAbsent(z.union([z.number().transform(String), decimalText.regex(/^-?\d+(\.\d+)?$/)]));

export const wholeOf = orAbsent(z.union([z.int(), wholeText.transform(Number)]));

export const flagOf = orAbsent(
  z.union([z.boolean(), z.enum(['true', 'false']).transform((value) => value === 'true')]),
);

/** An array of texts. Items that are not texts are omitted. */
export const textsOf = orAbsent(
  z.array(z.unknown()).transform((values) => values.flatMap((value) => anyText.safeParse(value).data ?? [])),
);

export function objectOf<S extends z.ZodRawShape>(shape: S) {
  return orAbsent(z.object(shape));
}

/** Items that are not objects of this shape are omitted. */
export function listOf<S extends z.ZodRawShape>(shape: S) {
  const one = z.object(shape);
  return orAbsent(
    z
      .array(z.unknown())
      .transform((values) => values.flatMap<z.output<typeof one>>((value) => one.safeParse(value).data ?? [])),
  );
}
