import { type CatchwordError, usageError } from '@catchword/base/errors';
import { wholeNumber as parseWholeNumber } from '@catchword/base/whole-number';
import * as z from 'zod';

/** Input is quoted up to this length. */
const MAX_SHOWN = 80;

function shown(value: unknown): string {
  return String(JSON.stringify(value)).slice(0, MAX_SHOWN);
}

/** Parameters of an address, each at most once; any other is rejected, because a misspelt one would be ignored. */
export const parameters = z.strictObject;

/** A text. @param fits accepts it @param hint says what to send */
export function textParameter(description: string, fits: (text: string) => boolean, hint: string) {
  return z.string(hint).refine(fits, hint).meta({ description });
}

/** A number in decimal digits. @param fallback its value if it is omitted */
export function wholeNumber(description: string, fallback: number, minimum: number, maximum = Number.MAX_SAFE_INTEGER) {
  return digits(description, minimum, maximum).default(fallback);
}

/** A number in decimal digits that may be omitted. */
export function optionalNumber(description: string, minimum: number) {
  return digits(description, minimum, Number.MAX_SAFE_INTEGER).optional();
}

function digits(description: string, minimum: number, maximum: number) {
  const hint = `Use a whole number from ${minimum} to ${maximum}.`;
  return z
    .string(hint)
    .transform((text, context) => {
      const number = parseWholeNumber(text, minimum, maximum);
      if (number !== null) return number;
      context.issues.push({ code: 'custom', message: hint, input: text });
      return z.NEVER;
    })
    .meta({ type: 'integer', minimum, maximum, description });
}

function errorOf(schema: z.ZodType, { issues }: z.ZodError, given: unknown): CatchwordError {
  const unknown = issues.find((one) => one.code === 'unrecognized_keys');
  if (unknown !== undefined) {
    const names = schema instanceof z.ZodObject ? Object.keys(schema.shape) : [];
    const hint = names.length === 0 ? 'Remove it.' : `Use ${names.join(' and ')} only.`;
    return usageError(`unknown parameter ${shown(unknown.keys[0])}`, hint);
  }
  const [issue] = issues;
  const name = String(issue?.path[0]);
  const hint = issue?.message ?? '';
  const value = (given as Readonly<Record<string, string | readonly string[] | undefined>>)[name];
  if (value === undefined) return usageError(`${name} is missing`, hint);
  if (typeof value !== 'string')
    return usageError(`${name} is given more than once: ${shown(value)}`, 'Send one value.');
  return usageError(value.trim() === '' ? `${name} is missing` : `${name}: ${shown(value)} is not valid`, hint);
}

/**
 * Parses the parameters of a request, for fastify.
 * @returns what the schema makes of them, or the error CatchwordError USAGE that names the first wrong one
 */
export function parseParameters(schema: z.ZodType, given: unknown): { value: unknown } | { error: CatchwordError } {
  const parsed = schema.safeParse(given);
  return parsed.success ? { value: parsed.data } : { error: errorOf(schema, parsed.error, given) };
}
