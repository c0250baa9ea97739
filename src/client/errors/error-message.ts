import type { Hide } from '../redact.ts';
import type { Tree } from './error-tree.ts';

/*
 * Reads an error of the service: a code and a text (interface, section 7). Its layout is not shown there, so these are
 * read, in JSON and XML: an `error` or `errors` with texts, codes or fields in it, and an object or element that has a
 * `code` of its own, or a `status` that is a code. With a status that is an error, everything in the body is its text.
 */

/** @rule 7-1, 7-7 */
export interface ServiceMessage {
  /** The service's own code, such as 601. */
  readonly code: number | undefined;
  /** One line without secrets; may be empty. At most 200 characters for each message, and 4,000 in total. */
  readonly text: string;
}

const MAX_LINE = 200;
/** A 422 has one message for each invalid field. */
const MAX_TEXT = 4_000;
/** For safety: a small body could hold very many texts. */
const MAX_LINES = 100;

const CODE = /^(?:(?:error|custom|status)[-_]?)?code$/i;
const TEXT = /^(?:error[-_]?)?(?:message|description|text|details?|reason)$/i;
const ERROR = /^errors?$/i;

export function isErrorName(name: string): boolean {
  return ERROR.test(name);
}

/** A number of three to five digits, except HTTP's codes of success. */
function codeFrom(text: string): number | undefined {
  return /^\s*(?!2\d\d\s*$)[1-9]\d{2,4}\s*$/.test(text) ? Number(text) : undefined;
}

/** The code that a field holds. Only numbers from 400 to 699 are codes in a `status`, which may also be a state. */
function codeAt({ name, text }: Tree): number | undefined {
  const code = codeFrom(text);
  if (CODE.test(name)) return code;
  return /^status$/i.test(name) && code !== undefined && code >= 400 && code < 700 ? code : undefined;
}

function codeIn(tree: Tree): number | undefined {
  return codeAt(tree) ?? tree.children.map(codeIn).find((code) => code !== undefined);
}

/** The code in the text of an error: `601`, or `601: The access token has expired`. */
function codeInText(text: string): number | undefined {
  return codeFrom(text) ?? (/\b601\b/.test(text) && /token/i.test(text) ? 601 : undefined);
}

/** What looks like a token in a field for tokens, or below one, may be a token that this client never saw. */
function withoutToken(path: string, text: string): string {
  return /token|password/i.test(path) && /^\s*(?=\S*\d|\S{16})\S{6,}\s*$/.test(text) ? '[secret]' : text;
}

/** One line for each text, after the names of the fields it is about. */
function* linesOf(tree: Tree, about = ''): Generator<string> {
  const { name, text, children, origin } = tree;
  if (CODE.test(name) || codeAt(tree) !== undefined) return;
  const isPlain = name === '' || TEXT.test(name) || ERROR.test(name);
  if (origin === 'attribute' && !isPlain) return;
  const start = isPlain ? about : `${about}${name.slice(0, MAX_LINE)}: `;
  if (text !== '') yield start + withoutToken(start, text);
  for (const child of children) yield* linesOf(child, start);
}

function clean(line: string, hide: Hide): string {
  return hide(line, 2 * MAX_LINE)
    .replace(/[\p{Cc}\s]+/gu, ' ')
    .trim()
    .slice(0, MAX_LINE);
}

function messageOfTrees(trees: readonly Tree[], hide: Hide): ServiceMessage {
  const lines: string[] = [];
  for (const tree of trees) {
    // The name of the outermost element is not a field.
    for (const line of linesOf({ ...tree, name: '' })) {
      if (lines.push(line) === MAX_LINES) break;
    }
  }
  const code = trees.map(codeIn).find((one) => one !== undefined) ?? codeInText(lines.join('; ').slice(0, MAX_TEXT));
  const text = lines.map((line) => clean(line, hide)).filter((line) => line !== '');
  return { code, text: text.join('; ').slice(0, MAX_TEXT) };
}

/** Whether an `error` is empty, as in `"errors": []`, `"error": null` and `<errors/>`; but `<error/>` is an error. */
function isSilent({ name: own, text, children, origin: ownOrigin }: Tree): boolean {
  if (ownOrigin === 'element' && /^error$/i.test(own)) return false;
  const isOther = ({ name, origin }: Tree) => origin === 'attribute' && !CODE.test(name) && !TEXT.test(name);
  return /^\s*(?:false|null|0)?\s*$/i.test(text) && children.every((child) => isOther(child) || isSilent(child));
}

/** Whether `names` has a field of what was asked for. A code or a text may belong to an error. */
export function isResult(names: readonly string[], fields: readonly string[]): boolean {
  return names.some((name) => fields.includes(name) && !CODE.test(name) && !TEXT.test(name));
}

function errorsIn(tree: Tree, fields: readonly string[]): Tree[] {
  if (ERROR.test(tree.name)) return isSilent(tree) ? [] : [tree];
  const names = tree.children.map(({ name }) => name);
  const isOne = isResult(names, fields);
  if (!isOne && tree.children.some((child) => codeAt(child) !== undefined)) return [tree];
  return tree.children.flatMap((child) => (ERROR.test(child.name) || !isOne ? errorsIn(child, fields) : []));
}

/**
 * The error in an answer with a good status; undefined if it has none. A text alone is an error if it has a code.
 * @param fields of what was asked for: an object or element with one of them has no error code of its own
 */
export function errorIn(tree: Tree, fields: readonly string[], hide: Hide): ServiceMessage | undefined {
  const errors = errorsIn(tree, fields);
  if (errors.length > 0) return messageOfTrees(errors, hide);
  // Broken JSON is broken, whatever it contains.
  const isText = tree.name === '' && tree.children.every(({ name }) => name === '') && !/^\s*["[{]/.test(tree.text);
  if (!isText) return undefined;
  const message = messageOfTrees([tree], hide);
  return message.code === undefined ? undefined : message;
}

/** Everything that an answer says: its error, or if it has none, all of its texts. */
export function messageIn(tree: Tree, hide: Hide): ServiceMessage {
  return errorIn(tree, [], hide) ?? messageOfTrees([tree], hide);
}
