import { CODE, codeInText, MAX_DEPTH, TEXT } from './error-names.ts';

/*
 * How a service says that all is well, or that something was done (see said.ts). Only what says so plainly is taken for it:
 * a write that is wrongly taken for done is lost, and a title that is wrongly taken for not owned is sold twice.
 */

const SUCCESS =
  /^(?:2\d\d)?\s*(?:ok|done|true|none|no errors?|success(?:ful(?:ly)?)?|(?:request )?(?:completed|successful)(?: successfully)?)?[.!]?$/i;

/** Whether a text says no more than that all is well: nothing, `OK`, a code of success. What is being updated is not well. */
export function readsAsSuccess(text: string): boolean {
  return SUCCESS.test(text.trim());
}

/** Whether it is no code of an error: none at all, 0, or one of HTTP's for success. */
export function isSuccessCode(value: unknown): boolean {
  const text = typeof value === 'number' ? `${value}` : value;
  return text === null || (typeof text === 'string' && /^\s*(?:0|2\d\d)?\s*$/.test(text));
}

/** In place of an error. `true` is none of them: it says that there is one. */
const NO_ERROR = /^\s*(?:none|no|false|0|null|(?:no|without|0) errors?)?[.!]?\s*$/i;

/**
 * Whether what stands in place of an error says that there is none: blank, null, `none`, `{"code": 0, "message": "Success"}`,
 * and what holds nothing else.
 */
export function isNoError(value: unknown, depth = 0): boolean {
  if (value === null || value === false || value === 0) return true;
  if (typeof value === 'string') return NO_ERROR.test(value);
  if (typeof value !== 'object' || depth > MAX_DEPTH) return false;
  return Object.entries(value).every(([name, one]: [string, unknown]) => {
    if (CODE.test(name)) return isSuccessCode(one);
    return (TEXT.test(name) && typeof one === 'string' && readsAsSuccess(one)) || isNoError(one, depth + 1);
  });
}

const DONE =
  '(?:ok|done|success|successful|successfully|complete|completed|created|updated|deleted|removed|saved|added|accepted|queued|changed|stored)';
/** `Created asset A-1`; but not `Updated title is required`, where it is said of something. */
const BEGINS_DONE = new RegExp(
  `^${DONE}\\b(?!.*\\b(?:is|are|was|were|has|have|must|can|cannot|could|should|will)\\b)`,
  'i',
);
/** `Asset A-1 updated`. */
const ENDS_DONE = new RegExp(`\\b${DONE}$`, 'i');
/** `Nothing was saved`, `could not be updated`. */
const NOT_DONE = /\b(?:no|not|nothing|never|to|be|errors?|fail(?:ed|ure|s)?|invalid|denied|unable)\b|n['’]t\b/i;
/** `success: false`, `deleted: 0`. */
const DENIED = /\bsuccess\W+false\b|[=:]\s*(?:false|0)\s*$/i;

/** An identifier alone: one word with a digit in it, so that `created` is none. */
const IDENTIFIER = /^(?=\D*\d)[\w.:-]{1,255}$/;

/** `HTTP-502`, `ERR-12`. */
const LIKE_CODE = /^(?:http|err(?:or)?|code|status)[-_.:]?\d+$/i;

/** The identifier that a value is, if it is no more than that. A code is none. */
export function identifierIn(value: unknown): string | undefined {
  const text = typeof value === 'string' ? value.trim() : '';
  const isCode = readsAsSuccess(text) || LIKE_CODE.test(text) || codeInText(text) !== undefined;
  return IDENTIFIER.test(text) && !isCode && !NOT_DONE.test(text) ? text : undefined;
}

/**
 * Whether a text that answers a write says that it was done: by what it begins with, or as an identifier that it can be. What
 * follows may be about something else, or be a title: `Created, books are not affected`.
 * @param isOwn whether an identifier may be what was written; any other word with a digit, such as `HTTP-502`, is none
 */
export function readsAsDone(text: string, isOwn: (identifier: string) => boolean): boolean {
  if (readsAsSuccess(text)) return true;
  const identifier = identifierIn(text);
  if (identifier !== undefined) return isOwn(identifier);
  const [first = ''] = text.trim().split(/[.,;:!\n"“]/, 1);
  const beginning = first.replace(/\b(?:with )?(?:no|without|0) (?:any )?errors?\b/i, '').trim();
  if (DENIED.test(text)) return false;
  if (BEGINS_DONE.test(beginning)) return true;
  return ENDS_DONE.test(beginning) && !NOT_DONE.test(beginning);
}
