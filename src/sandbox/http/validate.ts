import { z } from 'zod';

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

/** The members that the object may have, where it may have no others. */
function membersOf({ inst }: z.core.$ZodRawIssue): string {
  return inst instanceof z.ZodObject ? Object.keys(inst.shape).join(', ') : 'those that are known';
}

/** In plain words, where a schema has none of its own; undefined: as the library says it. */
function plainly(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.input === undefined) return 'is needed';
  if (issue.code === 'unrecognized_keys') return `is none of ${membersOf(issue)}`;
  if (issue.code === 'invalid_type') return `${EXPECTED[issue.expected] ?? issue.expected} is needed`;
  const ofNumber = 'origin' in issue && (issue.origin === 'number' || issue.origin === 'int');
  if (issue.code === 'too_small') return ofNumber ? `at least ${issue.minimum} is needed` : 'must not be empty';
  if (issue.code === 'too_big' && ofNumber) return `at most ${issue.maximum} is needed`;
  return undefined;
}

/** Where it is wrong: of members that are not known, each. */
function placesOf(issue: z.core.$ZodIssue): PropertyKey[][] {
  return issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...issue.path, key]) : [issue.path];
}

/** @param separator stands between the names of a path, as in `prices/0/amount` */
export function judge<T>(schema: z.ZodType<T>, value: unknown, separator: '/' | '.'): Judged<T> {
  const { success, data, error } = schema.safeParse(value, { error: plainly });
  if (success) return { asked: data };
  const messages = new Map<string, string>();
  for (const issue of error.issues) {
    for (const path of placesOf(issue)) {
      const where = path.length === 0 ? 'body' : path.join(separator);
      if (!messages.has(where)) messages.set(where, `${where}: ${issue.message}`);
    }
  }
  return { wrong: [...messages.values()] };
}
