import type { Fields } from './field-values.ts';

/*
 * What a JSON body says against itself, whatever its status: a service may answer 200 with an error, or with a part of
 * what was asked for. The texts are not masked.
 */

/** What frameworks call a sentence for people; `title` and `detail` are those of RFC 9457. */
const WORDS = ['title', 'detail', 'message', 'error_description'];
/** Members of an envelope that are true if it is not whole: of search engines and of services in front of them. */
const PARTIAL = ['timed_out', 'partial', 'incomplete', 'incomplete_results'];
const DONE = ['success', 'ok'];
const CODES = ['code', 'status', 'status_code', 'statusCode'];
const FAILED = ['error', 'fail', 'failed', 'failure'];
/** Codes that mean the same wherever they stand: too many requests, and a token that is not valid (interface, section 7). */
const KNOWN = [429, 601];

/** Of HTTP, or one of the service's own; others may mean success. */
const isErrorCode = (code: number): boolean => (code >= 400 && code <= 599) || KNOWN.includes(code);

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value ?? null);
}

/** Whether a member says something: not false, null, none, 0, a date of zeros, or empty, nor an object or a list of these. */
export function isFilled(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return Object.values(value).some(isFilled);
  return !/^(?:false|null|none|[0\s:TZ.-]*)$/i.test(textOf(value).trim());
}

/** The members `errors` and `error`. Texts as they are, anything else as JSON. */
export function errorsIn({ errors, error }: Fields): string[] {
  return [errors, error].flat().filter(isFilled).map(textOf);
}

/** Sentences for people outside of `errors` and `error`. */
export function wordsIn(fields: Fields): string[] {
  return WORDS.map((name) => fields[name]).filter(
    (value) => typeof value === 'string' && value.trim() !== '',
  ) as string[];
}

/** A code that any answer may have, at its top or in its first error. */
export function codeIn({ errors, error, ...fields }: Fields): number | undefined {
  const inner = [error, [errors].flat()[0]].map((one) => (typeof one === 'object' && one !== null ? one : {}));
  const said = [fields, ...(inner as Fields[])].flatMap((one) => CODES.map((name) => Number(one[name] ?? Number.NaN)));
  return KNOWN.find((code) => said.includes(code));
}

/**
 * Why an object is not the page, or the product, that it looks like: what it says is wrong with it, then its words for
 * people. Empty if it says nothing. Of a product only `errors` and `error` count, because its other members are its own.
 */
export function doubtsIn(fields: Fields): string[] {
  const errors = errorsIn(fields);
  if ('vbid' in fields) return errors;
  const shards = (fields._shards ?? {}) as Fields;
  const isWrong = (name: string): boolean =>
    isErrorCode(Number(fields[name])) || FAILED.includes(textOf(fields[name]).toLowerCase());
  const wrong = [
    ...PARTIAL.filter((name) => fields[name] === true),
    ...DONE.filter((name) => fields[name] === false),
    ...CODES.filter(isWrong),
  ].map((name) => `${name}: ${textOf(fields[name])}`);
  if (Number(shards.failed) > 0) wrong.push(`_shards: ${textOf(shards)}`);
  const doubts = [...errors, ...wrong];
  const isOther = !('items' in fields) && !('num_items' in fields);
  return doubts.length > 0 || isOther ? [...doubts, ...wordsIn(fields)] : [];
}
