import { nearestName } from '@catchword/base/nearest-name';
import * as z from 'zod';

/*
 * Types of request fields. Numbers and booleans may be given in quotes, as in the examples of the interface (section
 * 2.1.2); whole numbers and booleans are sent without quotes. A decimal is sent as given, without conversion to a float.
 */

/** @param allowed the rule, such as `must be a whole number` @rule 2.1.2-6 */
export function whole(allowed: string, accepts: (value: number) => boolean = () => true) {
  const isWhole = (text: string) => /^-?\d+$/.test(text) && Number.isSafeInteger(Number(text)) && accepts(Number(text));
  return z
    .union([z.number(), z.string()], allowed)
    .refine((given) => isWhole(String(given)), allowed)
    .transform(Number);
}

export const flag = z
  .union([z.boolean(), z.enum(['true', 'false'])], 'must be true or false')
  .transform((value) => value === true || value === 'true');

/** A text of a form. @param allowed the rule, such as `must be a currency code` */
export function written(allowed: string, form: RegExp) {
  return z.string(allowed).regex(form, allowed);
}

const DECIMAL = 'must be a decimal number of 0 or more, such as 19.95';

export const decimal = z.union([z.number(DECIMAL).min(0, DECIMAL), written(DECIMAL, /^\d+(\.\d+)?$/)], DECIMAL);

export const text = z.string('must be a text');

export const name = z.string('must be a text').regex(/\S/, 'must not be empty');

export const texts = z.array(name, 'must be an array of texts');

/** An existing day, without a time. */
export const day = z.iso.date('must be an ISO 8601 date, such as 2026-01-31');

const HTTP_URL = 'must be an http or https address';

export const httpUrl = z
  .string(HTTP_URL)
  .refine((value) => URL.canParse(value) && /^https?:$/.test(new URL(value).protocol), HTTP_URL);

/**
 * Options as a caller passes them: each may be omitted. Unlike `z.input`, this keeps the comments of the fields for the
 * callers of the library.
 */
export type OptionsOf<Shape extends z.ZodRawShape> = {
  readonly [Name in keyof Shape]?: z.input<Shape[Name]> | undefined;
};

const MAX_NAMES = 12;

function suggestion(key: string, names: readonly string[]): string {
  const nearest = nearestName(key, names);
  if (nearest !== undefined) return `Did you mean ${nearest} instead of ${key}?`;
  return names.length > MAX_NAMES ? `Remove ${key}.` : `Instead of ${key}, use one of: ${names.join(', ')}.`;
}

/** An object with these fields only: the service might ignore a misspelt one. `names` are suggested for unknown ones. */
export function only<S extends z.ZodRawShape>(shape: S, names: readonly string[] = Object.keys(shape)) {
  return z.strictObject(shape, {
    error: (issue) =>
      issue.code === 'unrecognized_keys'
        ? (issue.keys as string[]).map((key) => suggestion(key, names)).join(' ')
        : 'must be an object',
  });
}
