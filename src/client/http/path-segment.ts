import { CatchwordError } from '../../errors.ts';

/** @returns what is wrong with it, or undefined */
function fault(value: string): string | undefined {
  if (value.trim() === '') return 'is empty';
  if (value.length > 255) return 'is longer than 255 characters';
  if (/\p{Cc}|\p{Cs}/u.test(value)) return 'holds a character that no identifier has';
  return /^\.\.?$/.test(value) ? 'would lead to another address' : undefined;
}

/**
 * An identifier as one part of a path.
 * @param what what it is, such as `vbid`
 * @throws CatchwordError USAGE where it is no text, empty, longer than 255 characters, or would lead to another path
 */
export function pathPart(what: string, value: unknown): string {
  if (typeof value !== 'string') {
    throw new CatchwordError('USAGE', `the ${what} is no text`, {
      hint: 'Give it as a text: in quotes, numbers as well.',
    });
  }
  const wrong = fault(value);
  if (wrong === undefined) return encodeURIComponent(value);
  throw new CatchwordError('USAGE', `the ${what} ${wrong}`, { hint: `Give the ${what} as the service returned it.` });
}
