import { CatchwordError, type ErrorCode, toErrorRecord } from '../../errors.ts';
import type { Hide } from '../redact.ts';
import { MAX_DEPTH, WRAPPER } from './error-names.ts';

/**
 * The error of a request to create something, whose answer holds an identifier as well: whoever does not know of it
 * creates the same twice.
 * @param name of what was made, such as `vbid 9781402894626`, without secrets
 */
export function mayExist(error: CatchwordError, name: string): CatchwordError {
  return new CatchwordError(error.code, `${error.message}, together with ${name}, which may exist now`, {
    ...toErrorRecord(error),
    hint: `Look for ${name} before trying again: it may have been created all the same. ${error.hint ?? ''}`.trim(),
    retryable: false,
  });
}

/** Characters that are shown of an identifier. */
const MAX_IDENTIFIER = 255;

/** What is made, by the name of its kind; not many, of which it may be made. */
const RESOURCE = /^(?:asset|book|vital_book|package|user)$/i;

/** What was made, by the field that identifies it: at the top, in what is wrapped around it, or alone in a list. */
function madeIn(value: unknown, field: string, depth = 0): string | undefined {
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return undefined;
  if (Array.isArray(value)) return value.length === 1 ? madeIn(value[0], field, depth + 1) : undefined;
  const entries: [string, unknown][] = Object.entries(value);
  const [, made] = entries.find(([name]) => name === field) ?? [];
  if (typeof made === 'number' || (typeof made === 'string' && made.trim() !== '')) return String(made);
  const wrapped = entries.filter(([name]) => WRAPPER.test(name) || RESOURCE.test(name));
  return wrapped.map(([, one]) => madeIn(one, field, depth + 1)).find((one) => one !== undefined);
}

/**
 * The error of an answer, naming what was made although something went wrong.
 * @param value of the answer
 * @param creates the field that identifies what was to be created; undefined where nothing was
 */
export function namingMade(
  error: CatchwordError,
  value: unknown,
  creates: string | undefined,
  hide: Hide,
): CatchwordError {
  const made = creates === undefined ? undefined : madeIn(value, creates);
  return made === undefined ? error : mayExist(error, `${creates} ${hide(made, MAX_IDENTIFIER)}`);
}

/** Nothing was answered, or nothing that could be understood. */
const NOT_UNDERSTOOD: readonly ErrorCode[] = ['SOURCE_TIMEOUT', 'SOURCE_BODY', 'XML_INVALID'];

function isUnsure({ code, status = 0, retryable }: CatchwordError): boolean {
  // One that is final names what was made.
  if (code === 'SOURCE_UNAVAILABLE') return retryable;
  return NOT_UNDERSTOOD.includes(code) || (code === 'SOURCE_NOT_SERVICE' && status >= 200 && status < 300);
}

const LOOK_FOR_IT = 'Look for it before trying again: it may have been created.';

/** The error of an answer with a good status that shows neither what was to be created, nor by a code why it was not. */
export function lookFirst(error: CatchwordError): CatchwordError {
  if (error.serviceCode !== undefined) return error;
  const about = { ...toErrorRecord(error), hint: LOOK_FOR_IT, retryable: false };
  return new CatchwordError(error.code, error.message, about);
}

/**
 * What goes wrong with a request that was sent and must not be made twice: where nobody knows whether it was done, the error
 * is final and says to look first.
 * @param creates whether it was to create something
 */
export function maybeDone(error: unknown, creates: boolean): unknown {
  if (!(error instanceof CatchwordError) || !isUnsure(error)) return error;
  const what = creates ? 'what was to be created may exist now' : 'it may have been done all the same';
  const first = creates ? LOOK_FOR_IT : 'Look before trying again.';
  // Of the others, the hint is to try again.
  const also = error.code === 'SOURCE_TIMEOUT' ? ` ${error.hint ?? ''}` : '';
  // It would end a command as a wrong address does, where nothing can have been done.
  const code = error.code === 'SOURCE_NOT_SERVICE' ? 'SERVICE_ERROR' : error.code;
  return new CatchwordError(code, `${error.message}; ${what}`, {
    ...toErrorRecord(error),
    hint: `${first}${also}`,
    retryable: false,
  });
}
