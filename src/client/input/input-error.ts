import { inspect } from 'node:util';
import type { z } from 'zod';
import { CatchwordError } from '../../errors.ts';
import { nearestName } from '../nearest-name.ts';

/** Names that may stand at a place; places are written without indices: '' for the top, `prices`, `sales_rights`. */
export type KnownNames = Readonly<Record<string, readonly string[]>>;

/** How what a caller gave is parsed: with our words where a schema has none of its own. */
export const PARSING = {
  reportInput: true,
  error: ({ code, expected }: z.core.$ZodRawIssue): string | undefined =>
    code === 'invalid_type' && expected === 'string' ? 'a text is needed' : undefined,
};

const MAX_SHOWN = 40;
/** One line a person can still read. */
const MAX_ISSUES = 20;

function placeOf(path: readonly PropertyKey[]): string {
  return path
    .map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`))
    .join('')
    .replace(/^\./, '');
}

/** Not everything can be written as JSON: no BigInt, no object that holds itself. */
function written(value: unknown): string {
  try {
    return JSON.stringify(value) ?? inspect(value);
  } catch {
    return inspect(value, { depth: 1, breakLength: Number.POSITIVE_INFINITY });
  }
}

/** Addresses may hold credentials, so like credentials they are not repeated. */
function shown(value: unknown, place: string): string {
  if (/(url|key|token|password)$/i.test(place)) return 'what is given';
  const text = written(value);
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}

function unknownNames(keys: readonly string[], place: string): string {
  return keys.map((key) => `${place === '' ? key : `${place}.${key}`}: there is no such field`).join('; ');
}

function wrong(issue: z.core.$ZodIssue): string {
  const place = placeOf(issue.path);
  if (issue.code === 'unrecognized_keys') return unknownNames(issue.keys, place);
  if (issue.input === undefined) return `${place === '' ? 'all of it' : place}: missing; ${issue.message}`;
  return `${place === '' ? 'the whole' : place}: ${shown(issue.input, place)} cannot be used; ${issue.message}`;
}

function suggestions(issues: readonly z.core.$ZodIssue[], known: KnownNames): string[] {
  return issues.flatMap((issue) => {
    if (issue.code !== 'unrecognized_keys') return [];
    const at = issue.path.filter((part) => typeof part === 'string').join('.');
    const names = known[at] ?? [];
    return issue.keys.map((key) => {
      const nearest = nearestName(key, names);
      if (nearest !== undefined) return `For ${key}, the nearest known name is ${nearest}.`;
      return names.length > 12 ? `No known name is near ${key}.` : `In place of ${key}, there is: ${names.join(', ')}.`;
    });
  });
}

/**
 * Everything that is wrong with what the caller gave, in one error: each field by its path, what is wrong with it, and
 * what is allowed; for names that do not exist the hint has the nearest that does.
 * @param what what was given, such as `the asset`
 * @param issues of a parse with `PARSING`
 */
export function inputError(what: string, issues: readonly z.core.$ZodIssue[], known: KnownNames = {}): CatchwordError {
  const listed = issues.slice(0, MAX_ISSUES).map(wrong).join('; ');
  const more = issues.length > MAX_ISSUES ? `; and ${issues.length - MAX_ISSUES} more` : '';
  const hints = suggestions(issues.slice(0, MAX_ISSUES), known);
  return new CatchwordError('USAGE', `${what}: ${listed}${more}`, {
    hint: hints.length > 0 ? hints.join(' ') : 'Nothing was sent. Correct what is named, and try again.',
  });
}
