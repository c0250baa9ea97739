import { usageError } from '../errors.ts';
import { wholeNumber as parseWholeNumber } from '../whole-number.ts';

/** Input is quoted up to this length. */
const MAX_SHOWN = 80;

function shown(value: unknown): string {
  return String(JSON.stringify(value)).slice(0, MAX_SHOWN);
}

/**
 * Reads the named parameters of a query, each at most once.
 * @throws CatchwordError USAGE for any other parameter: a misspelt one would otherwise be ignored
 */
export function parametersOf<N extends string>(query: unknown, names: readonly N[]): Partial<Record<N, string>> {
  const found: Partial<Record<N, string>> = {};
  for (const [name, value] of Object.entries(query as Record<string, unknown>)) {
    const known = names.find((one) => one === name);
    if (known === undefined) {
      const hint = names.length === 0 ? 'Remove it.' : `Use ${names.join(' and ')} only.`;
      throw usageError(`unknown parameter ${shown(name)}`, hint);
    }
    if (typeof value !== 'string') {
      throw usageError(`${name} is given more than once: ${shown(value)}`, 'Send one value.');
    }
    found[known] = value;
  }
  return found;
}

/** @throws CatchwordError USAGE */
export function wholeNumber(name: string, value: string, min: number, max = Number.MAX_SAFE_INTEGER): number {
  const number = parseWholeNumber(value, min, max);
  if (number !== null) return number;
  throw usageError(`${name}: ${shown(value)} is not valid`, `Use a whole number from ${min} to ${max}.`);
}
