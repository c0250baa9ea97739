import type { Fields } from './field-values.ts';

/*
 * What a JSON body says against itself, whatever its status: a service may answer 200 with an error, or with a part of
 * what was asked for. The texts are not masked.
 */

/** What frameworks call a sentence for people; `title` and `detail` are those of RFC 9457. */
const WORDS = ['title', 'detail', 'message', 'messages', 'msg', 'reason', 'fault', 'error_description', 'errorMessage'];
/** Filled, they name a failure: of Salesforce, Jira, Keycloak, Apigee, Elasticsearch and Moodle. */
const WRONG = /^(?:(?:has)?errors?(?:messages?)?|fault|failures|failed|exception)$/;
/** What WeIdentity, for example, writes there if nothing is wrong. */
const FINE = /^(?:ok|success)$/i;
/** By yes, an answer is not whole: of Elasticsearch, Solr and GitHub. */
const PARTIAL = /^(?:timedout|(?:is)?partial|partialresults|incompleteresults)$/;
/** By no, it failed: of Cloudflare and Slack. */
const DONE = /^(?:success|ok)$/;
/** Members that say how the whole answer is: `_shards` of Elasticsearch, `responseHeader` of Solr, `status` of Couchbase. */
const INNER = /^_?(?:meta(?:data)?|shards|status|responseheader)$/i;
const CODES = ['code', 'status', 'status_code', 'statusCode'];
/** Of Couchbase (`fail`) and Kubernetes (`Failure`). */
const FAILED = /^(?:error|fail(?:ed|ure)?)$/i;
/** Codes that mean the same wherever they stand: too many requests, and a token that is not valid (interface, section 7). */
const KNOWN = [429, 601];

/** Of HTTP, or one of the service's own; others may mean success. */
const isErrorCode = (code: number): boolean => (code >= 400 && code <= 599) || KNOWN.includes(code);

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value ?? null);
}

/** Whether a member says something: not false, no, null, none, 0, a date of zeros, or empty, nor an object or a list of these. */
export function isFilled(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return Object.values(value).some(isFilled);
  return !/^(?:false|no|null|none|[0\s:TZ.-]*)$/i.test(textOf(value).trim());
}

/** The members `errors` and `error`, as `wordsIn`. */
export function errorsIn({ errors, error }: Fields): string[] {
  return [errors, error].flat().filter(isFilled).map(textOf);
}

/** What members outside of `errors` and `error` say to people. Texts as they are, anything else as JSON. */
export function wordsIn(fields: Fields): string[] {
  return WORDS.flatMap((name) => [fields[name]].flat().filter(isFilled).map(textOf));
}

/** A code that any answer may have, at its top or in its first error. */
export function codeIn({ errors, error, ...fields }: Fields): number | undefined {
  const inner = [error, [errors].flat()[0]].map((one) => (typeof one === 'object' && one !== null ? one : {}));
  const said = [fields, ...(inner as Fields[])].flatMap((one) => CODES.map((name) => Number(one[name] ?? Number.NaN)));
  return KNOWN.find((code) => said.includes(code));
}

function isWrong(name: string, value: unknown): boolean {
  const plain = name.replace(/[_-]/g, '').toLowerCase();
  if (PARTIAL.test(plain)) return /^(?:true|yes)$/i.test(textOf(value));
  if (DONE.test(plain)) return /^(?:false|no|0)$/i.test(textOf(value));
  if (CODES.includes(name)) return isErrorCode(Number(value)) || FAILED.test(textOf(value));
  return WRONG.test(plain) && !/^errors?$/.test(name) && isFilled(value) && !FINE.test(textOf(value).trim());
}

/** What the members of an envelope, or of one in it, say is wrong, outside of `errors` and `error`. */
function wrongIn(fields: Fields, within = ''): string[] {
  // `meta.success: 0` may be a count.
  const isCount = (value: unknown): boolean => within !== '' && value === 0;
  const wrong = Object.entries(fields).filter(([name, value]) => !isCount(value) && isWrong(name, value));
  return wrong.map(([name, value]) => `${within}${name}: ${textOf(value)}`);
}

/** What an object in an envelope says is wrong with the whole, and its words for people. A code of `meta` may be any other. */
function doubtsWithin(name: string, { code, ...fields }: Fields): string[] {
  const own = /^meta/i.test(name) ? fields : { ...fields, code };
  const doubts = [...errorsIn(own), ...wrongIn(own, `${name}.`)];
  return doubts.length > 0 ? [...doubts, ...wordsIn(own)] : [];
}

/**
 * Why an object is not the page, or the product, that it looks like: what it says is wrong with it, then its words for
 * people. Empty if it says nothing. Of a product only `errors` and `error` count, because its other members are its own.
 */
export function doubtsIn(fields: Fields): string[] {
  const errors = errorsIn(fields);
  if ('vbid' in fields) return errors;
  const inner = Object.entries(fields).filter(([name, value]) => INNER.test(name) && value instanceof Object);
  const said = inner.flatMap(([name, value]) => doubtsWithin(name, value as Fields));
  const doubts = [...errors, ...wrongIn(fields), ...said];
  const isOther = !('items' in fields) && !('num_items' in fields);
  const words = wordsIn(fields).filter((word) => !doubts.some((doubt) => doubt.endsWith(word)));
  return doubts.length > 0 || isOther ? [...doubts, ...words] : [];
}
