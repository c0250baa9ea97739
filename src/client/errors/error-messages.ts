import type { XmlElement } from '../../xml/read.ts';
import type { Hide } from '../redact.ts';
import { CODE, codeAt, codeFrom, codeInText, ERROR, MAX_DEPTH, STATUS, TEXT, WRAPPER } from './error-names.ts';
import { isNoError } from './success-words.ts';

/*
 * The pieces of what the service says went wrong, as they stand in JSON and XML (see said.ts): what tells of an
 * error, and how pieces become one line that can be shown.
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
/** For safety: a field name is put before every text in it, so a small body could make a very large message. */
const MAX_PARTS = 100;

/** Empty, it says that there are none. */
const LIST = /^(?:errors|exceptions|faults|failures)$/i;

/** That there is an error, and nothing of it. */
const FLAG = /^\s*true\s*$/i;

/** A piece of what is said, before it is joined. */
export interface Part {
  readonly code?: number | undefined;
  /** Each with the fields that it is about before it. As received: cut when they are joined, at the end. */
  readonly texts: readonly (readonly string[])[];
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
  const isSecret = (piece: string): boolean =>
    /token|password/i.test(name) && /^\s*(?:(?=\S*\d)\S{6,}|\S{16,})\s*$/.test(piece);
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
  if (typeof value === 'string') return { texts: told && !FLAG.test(value) ? [[value]] : [] };
  if (typeof value === 'number') return { code: told ? codeFrom(value) : undefined, texts: [] };
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return { texts: [] };
  if (Array.isArray(value)) return joined(value, (one) => fromJson(one, told, depth + 1));
  return joined(Object.entries(value), ([name, one]: [string, unknown]) => {
    const code = codeAt(name, one);
    if (code !== undefined || CODE.test(name)) return { code, texts: [] };
    if (TEXT.test(name)) return fromJson(one, true, depth + 1);
    if (ERROR.test(name) && isNoError(one)) return { texts: [] };
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

/** `<errors/>`, as `errors: []` in JSON, or what `isNoError` takes; but `<error/>` is one. */
function isSilent(element: XmlElement): boolean {
  const isTold = (name: string): boolean => CODE.test(name) || TEXT.test(name);
  if (element.children.some(({ name }) => !isTold(name))) return false;
  const told = named(element).filter(([name]) => isTold(name));
  if (element.text === '' && told.length === 0) return LIST.test(element.name);
  return isNoError(element.text) && isNoError(Object.fromEntries(told));
}

/** `error="true"`, which is said of no title, license or user. */
function flagsError(name: string, value: string): boolean {
  return ERROR.test(name) && !isNoError(value);
}

function isError(element: XmlElement): boolean {
  return (
    (isErrorName(element) && !isSilent(element)) ||
    codeOf(element) !== undefined ||
    [...element.attributes].some(([name, value]) => flagsError(name, value)) ||
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
    .filter(([name, one]) => TEXT.test(name) || (flagsError(name, one) && !FLAG.test(one)))
    .map(([, one]) => one);
  const isCode = CODE.test(element.name) || codeAt(element.name, element.text) !== undefined;
  const texts = [...attributes, ...(element.text === '' || isCode ? [] : [element.text])];
  return joined([{ code: codeOf(element), texts: texts.map((text) => [text]) }, nested], (part) => part);
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
