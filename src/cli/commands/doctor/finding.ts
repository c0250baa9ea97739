import { CatchwordError, messageOf } from '@catchword/base/errors';

export interface Result {
  readonly level: 'ok' | 'note' | 'failed';
  readonly text: string;
  readonly hint?: string;
}

export interface Finding extends Result {
  readonly check: string;
}

export function ok(text: string): Result {
  return { level: 'ok', text };
}

export function note(text: string, hint: string): Result {
  return { level: 'note', text, hint };
}

export function failed(text: string, hint?: string): Result {
  return { level: 'failed', text, ...(hint !== undefined && { hint }) };
}

/** Runs one check; an error is a failed check. */
export async function examine(check: string, work: () => Result | Promise<Result>): Promise<Finding> {
  try {
    return { check, ...(await work()) };
  } catch (error) {
    return { check, ...failed(messageOf(error), error instanceof CatchwordError ? error.hint : undefined) };
  }
}
