import { inspect } from 'node:util';
import { CatchwordError } from '@catchword/base/errors';
import * as z from 'zod';

/** Options for parsing input: a message for schemas that have none of their own. */
const PARSING = {
  reportInput: true,
  error: ({ code, expected }: z.core.$ZodRawIssue): string | undefined =>
    code === 'invalid_type' && expected === 'string' ? 'must be a text' : undefined,
};

const MAX_SHOWN = 40;
const MAX_ISSUES = 20;

function placeOf(path: readonly PropertyKey[]): string {
  return path
    .map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`))
    .join('')
    .replace(/^\./, '');
}

/** JSON, or what `inspect` shows of a BigInt or a circular object. */
function written(value: unknown): string {
  try {
    return JSON.stringify(value) ?? inspect(value);
  } catch {
    return inspect(value, { depth: 1, breakLength: Number.POSITIVE_INFINITY });
  }
}

/** Credentials are not shown, nor are addresses, which may contain credentials. */
function shown(value: unknown, place: string): string {
  if (/(url|key|token|password)$/i.test(place)) return 'the value';
  const text = written(value);
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}

function faultOf(issue: z.core.$ZodIssue): string {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => `${placeOf([...issue.path, key])}: unknown field`).join('; ');
  }
  const place = placeOf(issue.path) || 'it';
  if (issue.input === undefined) return `${place}: missing, ${issue.message}`;
  return `${place}: ${shown(issue.input, place)} is not valid, ${issue.message}`;
}

/**
 * @param what the input, such as `the asset`
 * @throws CatchwordError USAGE with the path of each invalid field, its value and the rule
 */
export function parseInput<S extends z.ZodType>(
  what: string,
  schema: S,
  given: unknown,
  hint = 'Correct these fields; nothing was sent.',
): z.output<S> {
  const parsed = schema.safeParse(given, PARSING);
  if (parsed.success) return parsed.data;
  const issues = parsed.error.issues.slice(0, MAX_ISSUES);
  const more = parsed.error.issues.length - issues.length;
  // The message of such an issue suggests known names.
  const hints = issues.filter(({ code }) => code === 'unrecognized_keys').map(({ message }) => message);
  const listed = issues.map(faultOf).join('; ');
  throw new CatchwordError('USAGE', `${what}: ${listed}${more === 0 ? '' : `; and ${more} more`}`, {
    hint: [...hints, ...(hints.length > 0 && hint !== UNCHECKED_HINT ? [] : [hint])].join(' '),
  });
}

/** The hint of a check that the caller can turn off. */
export const UNCHECKED_HINT = 'Correct these fields, or send them as they are with unchecked (--force).';

/** Fields that the interface does not show. */
export const OBJECT = z.looseObject({}, 'must be an object');

/**
 * Fields that the service is to judge: one that fits its schema is converted, any other is left as given.
 * @throws CatchwordError USAGE if `given` is not an object
 */
export function uncheckedFields(what: string, shape: z.ZodRawShape, given: unknown): Readonly<Record<string, unknown>> {
  parseInput(what, OBJECT, given);
  const fields = Object.entries(given as object).map(([name, value]: [string, unknown]) => {
    const parsed = Object.hasOwn(shape, name) ? z.safeParse(shape[name] ?? z.unknown(), value) : undefined;
    return [name, parsed?.success === true ? parsed.data : value] as const;
  });
  return Object.fromEntries(fields);
}
