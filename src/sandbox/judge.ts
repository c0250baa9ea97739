import type { z } from 'zod';

/** What is asked for; or one message for each member that is wrong, which names it. */
export type Judged<T> = { readonly asked: T } | { readonly wrong: readonly string[] };

const EXPECTED: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'an array',
  object: 'an object',
};

/** In plain words, where a schema has none of its own; undefined: as the library says it. */
function plainly(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.input === undefined) return 'is needed';
  if (issue.code === 'invalid_type') return `${EXPECTED[issue.expected] ?? issue.expected} is needed`;
  const ofNumber = 'origin' in issue && (issue.origin === 'number' || issue.origin === 'int');
  if (issue.code === 'too_small') return ofNumber ? `at least ${issue.minimum} is needed` : 'must not be empty';
  if (issue.code === 'too_big' && ofNumber) return `at most ${issue.maximum} is needed`;
  return undefined;
}

/** @param separator stands between the names of a path, as in `prices/0/amount` */
export function judge<T>(schema: z.ZodType<T>, value: unknown, separator: '/' | '.'): Judged<T> {
  const { success, data, error } = schema.safeParse(value, { error: plainly });
  if (success) return { asked: data };
  const messages = new Map<string, string>();
  for (const { path, message } of error.issues) {
    const where = path.length === 0 ? 'body' : path.join(separator);
    if (!messages.has(where)) messages.set(where, `${where}: ${message}`);
  }
  return { wrong: [...messages.values()] };
}
