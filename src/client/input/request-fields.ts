import { z } from 'zod';

/*
 * Types of request fields. Numbers and booleans may be given in quotes, as in the interface's own examples (section
 * 2.1.2); whole numbers and booleans are sent without them, as the tables of fields type them. A decimal is sent as it was
 * given: it goes through no float on its way.
 */

/** @param allowed what is allowed, as half a sentence */
export function whole(allowed: string, accepts: (value: number) => boolean = () => true) {
  return z.union([z.number(), z.string()], allowed).transform((given, context) => {
    const value = typeof given === 'number' ? given : /^-?\d+$/.test(given) ? Number(given) : Number.NaN;
    if (Number.isSafeInteger(value) && accepts(value)) return value;
    context.issues.push({ code: 'custom', message: allowed, input: given });
    return z.NEVER;
  });
}

export const flag = z
  .union([z.boolean(), z.enum(['true', 'false'])], 'true or false is needed')
  .transform((value) => value === true || value === 'true');

const NEEDS_DECIMAL = 'a decimal number of 0 or more, such as 19.95, is needed';

export const decimal = z.union(
  [z.number(NEEDS_DECIMAL).min(0, NEEDS_DECIMAL), z.string(NEEDS_DECIMAL).regex(/^\d+(\.\d+)?$/, NEEDS_DECIMAL)],
  NEEDS_DECIMAL,
);

export const text = z.string('a text is needed');

export const name = z.string('a text is needed').regex(/\S/, 'a text that is not empty is needed');

export const texts = z.array(name, 'an array of texts is needed');

/** A day that exists, without a time. */
export const day = z.iso.date('an ISO 8601 date that exists, such as 2026-01-31, is needed');

const NEEDS_URL = 'an http or https address is needed';

export const httpUrl = z
  .string(NEEDS_URL)
  .refine((value) => URL.canParse(value) && /^https?:$/.test(new URL(value).protocol), NEEDS_URL);

/** An object that holds these fields and no others. */
export function only<S extends z.ZodRawShape>(shape: S) {
  return z.strictObject(shape, {
    error: (issue) => (issue.code === 'invalid_type' ? 'an object is needed' : undefined),
  });
}
