import { z } from 'zod';

/*
 * Types of response fields. Services differ from the interface and from each other, so a field of another form than
 * expected is undefined, never an error: what was received is there to look at in `raw`.
 */

/** The word "null" has been seen where null is meant. */
function orAbsent<S extends z.ZodType>(schema: S) {
  return z
    .preprocess((value) => (value === null || value === 'null' ? undefined : value), schema.optional())
    .catch(undefined)
    .optional();
}

const anyText = z.union([z.string(), z.number().transform(String)]);

export const textOf = orAbsent(anyText);

/** To the digit where it was sent as text. */
export const decimalOf = orAbsent(
  z.union([
    z.number().transform(String),
    z
      .string()
      .trim()
      .regex(/^-?\d+(\.\d+)?$/),
  ]),
);

export const wholeOf = orAbsent(
  z.union([
    z.int(),
    z
      .string()
      .regex(/^-?\d{1,15}$/)
      .transform(Number),
  ]),
);

export const flagOf = orAbsent(
  z.union([z.boolean(), z.enum(['true', 'false']).transform((value) => value === 'true')]),
);

/** An array of texts; one text alone is an array of one. What is no text is left out. */
export const textsOf = orAbsent(
  z.union([
    anyText.transform((value) => [value]),
    z.array(z.unknown()).transform((values) => values.flatMap((value) => anyText.safeParse(value).data ?? [])),
  ]),
);

export function objectOf<S extends z.ZodRawShape>(shape: S) {
  return orAbsent(z.object(shape));
}

/** What is no object of this shape is left out. */
export function listOf<S extends z.ZodRawShape>(shape: S) {
  const one = z.object(shape);
  return orAbsent(
    z.array(z.unknown()).transform((values) =>
      values.flatMap((value): z.output<typeof one>[] => {
        const parsed = one.safeParse(value);
        return parsed.success ? [parsed.data] : [];
      }),
    ),
  );
}

/** A name, or an object that holds one. */
export const nameOf = orAbsent(
  z.union([
    anyText,
    z
      .object({ code: textOf, value: textOf, name: textOf })
      .transform(({ code, value, name }) => code ?? value ?? name)
      .pipe(z.string()),
  ]),
);

/** An object with a number and a name; a name alone is taken for one without a number. */
export function numberedOf<K extends 'value' | 'name'>(key: K) {
  const made = (id: number | undefined, name: string | undefined) => ({ id, [key]: name }) as Numbered<K>;
  return orAbsent(
    z.union([
      anyText.transform((name) => made(undefined, name)),
      z
        .object({ id: wholeOf, value: textOf, name: textOf })
        .transform(({ id, value, name }) => made(id, key === 'value' ? (value ?? name) : (name ?? value))),
    ]),
  );
}

type Numbered<K extends string> = { readonly id: number | undefined } & Readonly<Record<K, string | undefined>>;
