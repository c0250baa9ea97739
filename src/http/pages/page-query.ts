import { usageError } from '../../base/errors.ts';
import { wholeNumber } from '../../base/whole-number.ts';

/** A whole number of the query; null if it is absent or empty. @throws CatchwordError USAGE */
export function numberIn(query: URLSearchParams, name: string): number | null {
  const text = query.get(name);
  if (text === null || text === '') return null;
  const number = wholeNumber(text);
  if (number !== null) return number;
  throw usageError(`${name} is not a whole number`, `Remove ${name} from the address.`);
}
