import { CatchwordError } from '@catchword/base/errors';
import * as z from 'zod';
import { parseInput } from './parse-input.ts';
import { only } from './request-fields.ts';

export interface CallOptions {
  /** Aborts the call; it then fails with INTERRUPTED. */
  readonly signal?: AbortSignal | undefined;
}

/** An option of calls that check what they send. */
export const UNCHECKED = {
  /** Send the fields as they are, and let the service judge them. Default: reject what the interface does not allow. */
  unchecked: z.boolean('must be true or false').default(false),
};

/** The fields of a call: any object if the service is to judge them. */
export type FieldsFor<Options, Checked> = Options extends { readonly unchecked: true }
  ? Readonly<Record<string, unknown>>
  : Checked;

const signal = z.instanceof(AbortSignal, { error: 'must be an AbortSignal' });

/** The schema of options that include `signal`; default: a signal that does not abort. */
export function callOptions<S extends z.ZodRawShape>(shape: S) {
  return only({ ...shape, signal: signal.default(() => new AbortController().signal) });
}

/** Validates the options of a call. @param schema made by `callOptions` @throws CatchwordError USAGE */
export function optionsOf<S extends z.ZodType>(schema: S, given: unknown = {}): z.output<S> {
  // It has no fields of its own, so it would be taken for empty options.
  if (!(given instanceof AbortSignal)) return parseInput('the last argument (options)', schema, given);
  const hint = 'Pass { signal }, or omit it.';
  throw new CatchwordError('USAGE', 'the last argument (options) must be an object, not an AbortSignal', { hint });
}

const SIGNAL_ONLY = callOptions({});

/** The signal of options that have nothing else. @throws CatchwordError USAGE */
export function signalOf(given: CallOptions | undefined): AbortSignal {
  return optionsOf(SIGNAL_ONLY, given).signal;
}
