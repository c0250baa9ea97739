import { inspect } from 'node:util';
import type { z } from 'zod';
import { CatchwordError } from '../../errors.ts';
import { nearestName } from '../../nearest-name.ts';

/** Known names by place, without indices: '' for the top, `prices`, `sales_rights`. */
export type KnownNames = Readonly<Record<string, readonly string[]>>;

/** Options for parsing input: a message for schemas that have none of their own. */
export const PARSING = {
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

function unknownNames(keys: readonly string[], place: string): string {
  return keys.map((key) => `${place === '' ? key : `${place}.${key}`}: unknown field`).join('; ');
}

function wrong(issue: z.core.$ZodIssue): string {
  const place = placeOf(issue.path);
  if (issue.code === 'unrecognized_keys') return unknownNames(issue.keys, place);
  if (issue.input === undefined) return `${place === '' ? 'it' : place}: missing, ${issue.message}`;
  return `${place === '' ? 'it' : place}: ${shown(issue.input, place)} is not valid, ${issue.message}`;
}

function suggestions(issues: readonly z.core.$ZodIssue[], known: KnownNames): string[] {
  return issues.flatMap((issue) => {
    if (issue.code !== 'unrecognized_keys') return [];
    const at = issue.path.filter((part) => typeof part === 'string').join('.');
    const names = known[at] ?? [];
    return issue.keys.map((key) => {
      const nearest = nearestName(key, names);
      if (nearest !== undefined) return `Did you mean ${nearest} instead of ${key}?`;
      return names.length > 12 ? `Remove ${key}.` : `Instead of ${key}, use one of: ${names.join(', ')}.`;
    });
  });
}

/**
 * One error for all invalid input: the path of each field, its value and the rule. The hint suggests names for unknown ones.
 * @param what the input, such as `the asset`
 * @param issues of a parse with `PARSING`
 */
export function inputError(what: string, issues: readonly z.core.$ZodIssue[], known: KnownNames = {}): CatchwordError {
  const listed = issues.slice(0, MAX_ISSUES).map(wrong).join('; ');
  const more = issues.length > MAX_ISSUES ? `; and ${issues.length - MAX_ISSUES} more` : '';
  const hints = suggestions(issues.slice(0, MAX_ISSUES), known);
  return new CatchwordError('USAGE', `${what}: ${listed}${more}`, {
    hint: hints.length > 0 ? hints.join(' ') : 'Correct these fields; nothing was sent.',
  });
}
