import { CatchwordError } from '../errors.ts';
import { wholeNumber as parseWholeNumber } from '../whole-number.ts';

/** Longer than this nothing given is repeated. */
const SHOWN = 80;

function wrong(name: string, value: unknown, needed: string): CatchwordError {
  const shown = (JSON.stringify(value) ?? 'nothing').slice(0, SHOWN);
  return new CatchwordError('USAGE', `${name}: ${shown} cannot be used`, {
    hint: `${needed} is needed.`.replace(/^./, (c) => c.toUpperCase()),
  });
}

/**
 * The named parameters of a query, each at most once.
 * @throws CatchwordError USAGE for a parameter that is not named here: a misspelt one would be read as absent
 */
export function parametersOf<N extends string>(query: unknown, names: readonly N[]): Partial<Record<N, string>> {
  const found: Partial<Record<N, string>> = {};
  for (const [name, value] of Object.entries(query as Record<string, unknown>)) {
    const known = names.find((one) => one === name);
    if (known === undefined) {
      const hint = names.length === 0 ? 'It takes none.' : `It takes ${names.join(' and ')}.`;
      throw new CatchwordError('USAGE', `there is no parameter ${JSON.stringify(name.slice(0, SHOWN))}`, { hint });
    }
    if (typeof value !== 'string') throw wrong(name, value, 'one value');
    found[known] = value;
  }
  return found;
}

/** @throws CatchwordError USAGE */
export function wholeNumber(name: string, value: string, min: number, max = Number.MAX_SAFE_INTEGER): number {
  const number = parseWholeNumber(value, min, max);
  if (number !== null) return number;
  throw wrong(name, value, `a whole number from ${min} to ${max}`);
}

/**
 * A place in the change log that is not beyond its end: waiting there would silently pass over what comes before it.
 * @throws CatchwordError USAGE
 */
export function checkPlace(name: string, seq: number, lastSeq: number): number {
  if (seq <= lastSeq) return seq;
  throw new CatchwordError('USAGE', `${name}: ${seq} is beyond the newest change, which is ${lastSeq}`, {
    hint: 'It comes from another mirror, or from before this one was restored: read from 0 on again.',
  });
}
