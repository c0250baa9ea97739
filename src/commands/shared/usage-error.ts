import { CatchwordError } from '../../errors.ts';

/** An error of the user's input. */
export function usageError(message: string, hint: string, cause?: unknown): CatchwordError {
  return new CatchwordError('USAGE', message, { hint, cause });
}
