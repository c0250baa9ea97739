import type { XmlElement } from '../xml/read.ts';
import type { Hide } from './secrets.ts';

/*
 * The pieces of what the service says went wrong, as they stand in JSON and XML (see said.ts): by which names codes and
 * texts go, and how pieces become one line that can be shown.
 */

/** What the service says went wrong. */
export interface Said {
  /** The service's own code, such as 601. */
  readonly code: number | undefined;
  /** Without secrets and control characters, at most 200 characters of each message and 4,000 in all; may be empty. */
  readonly text: string;
}

export const MAX_TEXT = 200;
/** A 422 has a message for each field that is wrong; whoever has to correct them needs them all. */
const MAX_ALL = 4_000;
export const MAX_DEPTH = 6;
/** For safety: a field name is put before every text in it, so a small body could make a very large message. */
const MAX_PARTS = 100;

export const CODE = /^(?:(?:error|custom|status)[-_]?)?code$/i;
/** Of success and of states as well: only numbers from 400 to 699 are codes. */
const STATUS = /^status$/i;
export const TEXT = /^(?:error[-_]?)?(?:message|description|text|details?|reason)$/i;
export const ERROR = /^(?:errors?|exceptions?|faults?)$/i;
export const WRAPPER = /^(?:response|data|result)$/i;
/** Empty, it says that there are none. */
const LIST = /^(?:errors|exceptions|faults)$/i;

/** A piece of what is said, before it is joined. */
export interface Part {
  readonly code?: number | undefined;
  /** Each with the fields that it is about before it. As received: cut when they are joined, at the end. */
  readonly texts: readonly (readonly string[])[];
}

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

/** `success: false`, which is said of no title, license or user. */
export function deniesSuccess(name: string, value: unknown): boolean {
  return /^success$/i.test(name) && /^\s*false\s*$/i.test(typeof value === 'boolean' ? `${value}` : textOf(value));
}

/** `status: "error"`. A title may be in such a state, too. */
export function isFailedState(name: string, value: unknown): boolean {
  return STATUS.test(name) && /^\s*(?:errors?|fail(?:ed|ure)?)\s*$/i.test(textOf(value));
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/**
 * `{"errors": {"title": ["is missing"]}}`: the field is half of what is said. What looks like a token in a field
 * for tokens may be one that was never sent, so that nothing else knows it for a secret.
 */
function aboutField(name: string, { code, texts }: Part): Part {
  const isSecret = (piece: string): boolean => /token/i.test(name) && /^\s*(?=\S*\d)\S{6,}\s*$/.test(piece);
  return { code, texts: texts.map((pieces) => [name, ...pieces.map((one) => (isSecret(one) ? '[secret]' : one))]) };
}

/** The first code, and the first texts. */
export function joined<Item>(items: Iterable<Item>, read: (item: Item) => Part): Part {
  let code: number | undefined;
  const texts: (readonly string[])[] = [];
  for (const item of items) {
    const part = read(item);
    code ??= part.code;
    texts.push(...part.texts.slice(0, MAX_PARTS - texts.length));
    if (code !== undefined && texts.length >= MAX_PARTS) break;
  }
  return { code, texts };
}

/** @param told whether all that is found belongs to an error, field names among it */
export function fromJson(value: unknown, told: boolean, depth = 0): Part {
  if (typeof value === 'string') return { texts: told ? [[value]] : [] };
  if (typeof value === 'number') return { code: told ? codeFrom(value) : undefined, texts: [] };
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return { texts: [] };
  if (Array.isArray(value)) return joined(value, (one) => fromJson(one, told, depth + 1));
  return joined(Object.entries(value), ([name, one]: [string, unknown]) => {
    const code = codeAt(name, one);
    if (code !== undefined || CODE.test(name)) return { code, texts: [] };
    if (TEXT.test(name)) return fromJson(one, true, depth + 1);
    if (ERROR.test(name) || WRAPPER.test(name)) return fromJson(one, told || ERROR.test(name), depth + 1);
    const { texts } = told ? fromJson(one, true, depth + 1) : { texts: [] };
    return aboutField(name, { texts });
  });
}

/** What an element says by name: its attributes, and the texts of its children. */
function named({ attributes, children }: XmlElement): (readonly [string, string])[] {
  return [...attributes, ...children.map(({ name, text }) => [name, text] as const)];
}

function codeOf(element: XmlElement): number | undefined {
  return joined(named(element), ([name, value]) => ({ code: codeAt(name, value), texts: [] })).code;
}

/** Whether an element tells of an error by its name alone. */
export function isErrorName({ name }: Pick<XmlElement, 'name'>): boolean {
  return ERROR.test(name);
}

/** `<errors/>`, as `errors: []` in JSON. */
function isEmptyList({ name, text, attributes, children }: XmlElement): boolean {
  return (
    LIST.test(name) && text === '' && children.length === 0 && ![...attributes.keys()].some((one) => TEXT.test(one))
  );
}

function isError(element: XmlElement): boolean {
  return (
    (isErrorName(element) && !isEmptyList(element)) ||
    codeOf(element) !== undefined ||
    named(element).some(([name, value]) => deniesSuccess(name, value) || isFailedState(name, value))
  );
}

function fromChild(child: XmlElement, told: boolean): Part {
  const part = fromElement(child, told);
  return told && ![TEXT, ERROR, WRAPPER].some((known) => known.test(child.name)) ? aboutField(child.name, part) : part;
}

/** @param told as of `fromJson` */
export function fromElement(element: XmlElement, told: boolean): Part {
  const own = told || isError(element);
  const nested = joined(element.children, (child) => fromChild(child, own));
  if (!own) return nested;
  const attributes = [...element.attributes]
    .filter(([name]) => TEXT.test(name) || ERROR.test(name))
    .map(([, one]) => one);
  const isCode = CODE.test(element.name) || codeAt(element.name, element.text) !== undefined;
  const texts = [...attributes, ...(element.text === '' || isCode ? [] : [element.text])];
  return joined([{ code: codeOf(element), texts: texts.map((text) => [text]) }, nested], (part) => part);
}

/** A code that stands in the text alone: `601`, or `601: The access token is no longer valid`. */
export function codeInText(text: string): number | undefined {
  const code = codeFrom(text);
  if (isCommon(code)) return code;
  return /\b601\b/.test(text) && /token/i.test(text) ? 601 : undefined;
}

/** One piece of what is shown. White space goes, so some more than is shown is looked at. */
function clean(text: string, hide: Hide): string {
  return hide(text, 2 * MAX_TEXT)
    .replace(/[\p{Cc}\s]+/gu, ' ')
    .trim()
    .slice(0, MAX_TEXT);
}

function lineOf(texts: Part['texts'], hide: Hide): string {
  return texts
    .map((pieces) =>
      pieces
        .map((piece) => clean(piece, hide))
        .join(': ')
        .slice(0, MAX_TEXT),
    )
    .filter((one) => one !== '')
    .join('; ')
    .slice(0, MAX_ALL);
}

/** One line of all the pieces, without secrets; and the code, from the text if it stands nowhere else. */
export function cleaned({ code, texts }: Part, hide: Hide): Said {
  // A secret may be a part of a word.
  const asReceived: Hide = (text, maxLength) => text.slice(0, maxLength);
  return { code: code ?? codeInText(lineOf(texts, asReceived)), text: lineOf(texts, hide) };
}

/** Whether an element tells of an error, itself or below it. */
export function holdsError(element: XmlElement): boolean {
  return isError(element) || element.children.some(holdsError);
}
