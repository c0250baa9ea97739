import { CatchwordError } from '../../errors.ts';
import { inputError } from './input-error.ts';

/** Options of every call. */
export interface CallOptions {
  /** Aborts the call; it then fails with INTERRUPTED. */
  readonly signal?: AbortSignal | undefined;
}

/** @throws CatchwordError USAGE if it is not an object */
export function requireObject(what: string, given: unknown): asserts given is object {
  if (typeof given === 'object' && given !== null && !Array.isArray(given)) return;
  throw new CatchwordError('USAGE', `${what} must be an object`, { hint: 'Pass its fields as one object.' });
}

/**
 * Rejects misspelt names, which would be ignored otherwise.
 * @throws CatchwordError USAGE
 */
export function requireNames(what: string, given: unknown, names: readonly string[]): void {
  requireObject(what, given);
  const keys = Object.keys(given).filter((name) => !names.includes(name));
  if (keys.length === 0) return;
  throw inputError(what, [{ code: 'unrecognized_keys', keys, path: [], message: '' }], { '': names });
}

/**
 * Validates the options of a call, and adds a signal if there is none.
 * @param names of its options, besides `signal`
 * @throws CatchwordError USAGE
 */
export function optionsOf<Options extends CallOptions>(
  given: Options | undefined,
  names: readonly Exclude<keyof Options & string, 'signal'>[] = [],
): Partial<Options> & { readonly signal: AbortSignal } {
  const options: Partial<Options> = given ?? {};
  if (given !== undefined) requireNames('the last argument (options)', given, ['signal', ...names]);
  const { signal = new AbortController().signal } = options;
  if (!(given instanceof AbortSignal) && signal instanceof AbortSignal) return { ...options, signal };
  throw new CatchwordError('USAGE', 'options.signal must be an AbortSignal', { hint: 'Pass { signal }, or omit it.' });
}
