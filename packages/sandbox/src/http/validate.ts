import * as z from 'zod';
import { Rejection, type RejectionDetails } from './reply.ts';

const TYPES: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'an array',
  object: 'an object',
};

/** Describes a problem for which the schema has no words of its own. Undefined: the library's words. */
function describe(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.input === undefined) return 'is required';
  if (issue.code === 'unrecognized_keys') {
    const known = issue.inst instanceof z.ZodObject ? Object.keys(issue.inst.shape) : [];
    return `is unknown; use ${known.join(', ')}`;
  }
  if (issue.code === 'invalid_type') return `must be ${TYPES[issue.expected] ?? issue.expected}`;
  if (issue.code === 'invalid_value') return `must be one of ${issue.values.join(', ')}`;
  const isNumber = 'origin' in issue && (issue.origin === 'number' || issue.origin === 'int');
  if (issue.code === 'too_small') return isNumber ? `must be at least ${issue.minimum}` : 'must not be empty';
  if (issue.code === 'too_big') return `must be at most ${issue.maximum}${isNumber ? '' : ' characters'}`;
  return undefined;
}

/**
 * Parses a value by its schema.
 * @throws Rejection 422 (or `status`) with the first problem of each wrong member, as in `prices/0/amount: …`
 */
export function validate<T>(schema: z.ZodType<T>, value: unknown, status = 422, details?: RejectionDetails): T {
  const { success, data, error } = schema.safeParse(value, { error: describe });
  if (success) return data;
  const messages = new Map<string, string>();
  for (const issue of error.issues) {
    const { path: own } = issue;
    // Each unknown member is a place of its own.
    for (const path of issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...own, key]) : [own]) {
      const place = path.length === 0 ? 'body' : path.join('/');
      if (!messages.has(place)) messages.set(place, `${place}: ${issue.message}`);
    }
  }
  throw new Rejection(status, [...messages.values()], details);
}
