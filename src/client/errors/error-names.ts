/*
 * By which names codes and texts go in what a service says of errors (see said.ts), and what a code is.
 */

/** For safety: what is nested deeper is not looked at. */
export const MAX_DEPTH = 6;

export const CODE = /^(?:(?:error|custom|status)[-_]?)?code$/i;
/** Of success and of states as well: only numbers from 400 to 699 are codes. */
export const STATUS = /^status$/i;
export const TEXT = /^(?:error[-_]?)?(?:message|description|text|details?|reason)$/i;
export const ERROR = /^(?:errors?|exceptions?|faults?|failures?)$/i;
export const WRAPPER = /^(?:response|data|result)$/i;

/** Codes of success are none of an error. */
export function codeFrom(value: unknown): number | undefined {
  if (typeof value !== 'string' && typeof value !== 'number') return undefined;
  return /^\s*(?!2\d\d\s*$)[1-9]\d{2,4}\s*$/.test(String(value)) ? Number(value) : undefined;
}

/** HTTP's codes of errors, and most of the service's own. */
export function isCommon(code: number | undefined): code is number {
  return code !== undefined && code >= 400 && code < 700;
}

/** The code that a field or an attribute holds, going by its name. */
export function codeAt(name: string, value: unknown): number | undefined {
  if (CODE.test(name)) return codeFrom(value);
  const code = STATUS.test(name) ? codeFrom(value) : undefined;
  return isCommon(code) ? code : undefined;
}

/** A code that stands in the text alone: `601`, or `601: The access token is no longer valid`. */
export function codeInText(text: string): number | undefined {
  const code = codeFrom(text);
  if (isCommon(code)) return code;
  return /\b601\b/.test(text) && /token/i.test(text) ? 601 : undefined;
}
