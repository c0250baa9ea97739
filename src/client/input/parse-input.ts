import { inspect } from 'node:util';
import type { z } from 'zod';
import { CatchwordError } from '../../errors.ts';

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
 * Validates input by a schema of `request-fields.ts`.
 * @param what the input, such as `the asset`
 * @throws CatchwordError USAGE with the path of each invalid field, its value and the rule
 */
export function parseInput<S extends z.ZodType>(what: string, schema: S, given: unknown): z.output<S> {
  const parsed = schema.safeParse(given, PARSING);
  if (parsed.success) return parsed.data;
  const issues = parsed.error.issues.slice(0, MAX_ISSUES);
  const more = parsed.error.issues.length - issues.length;
  // The message of such an issue suggests known names.
  const hints = issues.filter(({ code }) => code === 'unrecognized_keys').map(({ message }) => message);
  const listed = issues.map(faultOf).join('; ');
  throw new CatchwordError('USAGE', `${what}: ${listed}${more === 0 ? '' : `; and ${more} more`}`, {
    hint: hints.length > 0 ? hints.join(' ') : 'Correct these fields; nothing was sent.',
  });
}
