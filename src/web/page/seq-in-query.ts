import { usageError } from '../../errors.ts';
import { wholeNumber } from '../../whole-number.ts';

/** Input is quoted up to this length. */
const MAX_SHOWN = 80;

/**
 * The number of a change that the address names; null if it names none.
 * @throws CatchwordError USAGE if it is not a whole number of 1 or more
 */
export function seqInQuery(query: URLSearchParams, name: string): number | null {
  const text = query.get(name);
  if (text === null || text === '') return null;
  const seq = wholeNumber(text, 1);
  if (seq !== null) return seq;
  const shown = JSON.stringify(text.slice(0, MAX_SHOWN));
  throw usageError(`${name}: ${shown} is not valid`, 'Use the number of a change: 1 or more, digits only.');
}
