import { CatchwordError } from '../errors.ts';
import type { CallOptions } from './v4-call.ts';

/** @throws CatchwordError USAGE where it is no object */
export function requireObject(what: string, given: unknown): void {
  if (typeof given === 'object' && given !== null && !Array.isArray(given)) return;
  throw new CatchwordError('USAGE', `${what} is no object`, { hint: 'Give its fields as one object.' });
}

/**
 * What a call was given, with a signal in any case.
 * @throws CatchwordError USAGE where it is no object, or its signal is none
 */
export function optionsOf<Options extends CallOptions>(
  given: Options | undefined,
): Partial<Options> & { readonly signal: AbortSignal } {
  const options: Partial<Options> = given ?? {};
  if (given !== undefined) requireObject('the last argument, the options,', given);
  const { signal = new AbortController().signal } = options;
  if (signal instanceof AbortSignal) return { ...options, signal };
  throw new CatchwordError('USAGE', 'options.signal is no AbortSignal', {
    hint: 'Give the signal of an AbortController, or none.',
  });
}
