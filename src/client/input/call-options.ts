import { CatchwordError } from '../../errors.ts';
import type { CallOptions } from '../http/json-request.ts';
import { inputError } from './input-error.ts';

/** @throws CatchwordError USAGE where it is no object */
export function requireObject(what: string, given: unknown): asserts given is object {
  if (typeof given === 'object' && given !== null && !Array.isArray(given)) return;
  throw new CatchwordError('USAGE', `${what} is no object`, { hint: 'Give its fields as one object.' });
}

/**
 * What is misspelt would be dropped without a word: the limit to one title, say.
 * @throws CatchwordError USAGE where it is no object, or holds a name that is none of `names`
 */
export function requireNames(what: string, given: unknown, names: readonly string[]): void {
  requireObject(what, given);
  const keys = Object.keys(given).filter((name) => !names.includes(name));
  if (keys.length === 0) return;
  throw inputError(what, [{ code: 'unrecognized_keys', keys, path: [], message: '' }], { '': names });
}

/**
 * What a call was given, with a signal in any case.
 * @param names of its options, besides `signal`
 * @throws CatchwordError USAGE where it is no object, has a name that is no option, or its signal is none
 */
export function optionsOf<Options extends CallOptions>(
  given: Options | undefined,
  names: readonly Exclude<keyof Options & string, 'signal'>[] = [],
): Partial<Options> & { readonly signal: AbortSignal } {
  const options: Partial<Options> = given ?? {};
  if (given instanceof AbortSignal) {
    throw new CatchwordError('USAGE', 'the options are a signal', { hint: 'Give it as one of them: { signal }.' });
  }
  if (given !== undefined) requireNames('the last argument (options)', given, ['signal', ...names]);
  const { signal = new AbortController().signal } = options;
  if (signal instanceof AbortSignal) return { ...options, signal };
  throw new CatchwordError('USAGE', 'options.signal is no AbortSignal', {
    hint: 'Give the signal of an AbortController, or none.',
  });
}
