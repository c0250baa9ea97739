import { CatchwordError } from '../errors.ts';
import { readXml, type XmlElement } from '../xml/read.ts';
import type { Hide } from './secrets.ts';

/*
 * What the service says went wrong (interface, section 7). Neither layout nor status is laid down, so every layout that
 * has been seen is read, at every status: code and text as attributes, as child elements or as text, at the top or
 * nested; JSON with `errors`, with `error`, a bare JSON string, broken JSON, plain text, nothing. What differs is what is
 * an error at all: of a refusal everything is, of an answer with a good status only what says so.
 */
export interface Said {
  /** The service's own code, such as 601. */
  readonly code: number | undefined;
  /** Without secrets and control characters, at most 200 characters of each message and 4,000 in all; may be empty. */
  readonly text: string;
}

const MAX_TEXT = 200;
/** A 422 has a message for each field that is wrong; whoever has to correct them needs them all. */
const MAX_ALL = 4_000;
const MAX_DEPTH = 6;
/** For safety: a field name is put before every text in it, so a small body could make a very large message. */
const MAX_PARTS = 100;

const CODE = /^(?:(?:error|custom|status)[-_]?)?code$/i;
/** Of success and of states as well: only numbers from 400 to 699 are codes. */
const STATUS = /^status$/i;
const TEXT = /^(?:error[-_]?)?(?:message|description|text|details?|reason)$/i;
const ERROR = /^(?:errors?|exceptions?|faults?)$/i;
const WRAPPER = /^(?:response|data|result)$/i;

/** A piece of what is said, before it is joined. */
interface Part {
  readonly code?: number | undefined;
  /** Each with the fields that it is about before it. As received: cut when they are joined, at the end. */
  readonly texts: readonly (readonly string[])[];
}

/** Codes of success are none of an error. */
function codeFrom(value: unknown): number | undefined {
  if (typeof value !== 'string' && typeof value !== 'number') return undefined;
  return /^\s*(?!2\d\d\s*$)[1-9]\d{2,4}\s*$/.test(String(value)) ? Number(value) : undefined;
}

function isCommon(code: number | undefined): code is number {
  return code !== undefined && code >= 400 && code < 700;
}

/** The code that a field or an attribute holds, going by its name. */
function codeAt(name: string, value: unknown): number | undefined {
  if (CODE.test(name)) return codeFrom(value);
  const code = STATUS.test(name) ? codeFrom(value) : undefined;
  return isCommon(code) ? code : undefined;
}

/** The first code, and the first texts. */
function joined<Item>(items: Iterable<Item>, read: (item: Item) => Part): Part {
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
function fromJson(value: unknown, told: boolean, depth = 0): Part {
  if (typeof value === 'string') return { texts: told ? [[value]] : [] };
  if (typeof value === 'number') return { code: told ? codeFrom(value) : undefined, texts: [] };
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return { texts: [] };
  if (Array.isArray(value)) return joined(value, (one) => fromJson(one, told, depth + 1));
  return joined(Object.entries(value), ([name, one]: [string, unknown]) => {
    const code = codeAt(name, one);
    if (code !== undefined || CODE.test(name)) return { code, texts: [] };
    if (TEXT.test(name)) return fromJson(one, true, depth + 1);
    if (ERROR.test(name) || WRAPPER.test(name)) return fromJson(one, told || ERROR.test(name), depth + 1);
    // `{"errors": {"title": ["is missing"]}}`: the field is half of what is said.
    const { texts } = told ? fromJson(one, true, depth + 1) : { texts: [] };
    return { texts: texts.map((text) => [name, ...text]) };
  });
}

function codeOf({ attributes, children }: XmlElement): number | undefined {
  const named = [...attributes, ...children.map(({ name, text }) => [name, text] as const)];
  return joined(named, ([name, value]) => ({ code: codeAt(name, value), texts: [] })).code;
}

/** Whether an element tells of an error by its name alone. */
export function isErrorName({ name }: Pick<XmlElement, 'name'>): boolean {
  return ERROR.test(name);
}

function isError(element: XmlElement): boolean {
  return isErrorName(element) || codeOf(element) !== undefined;
}

function fromElement(element: XmlElement, told: boolean): Part {
  const own = told || isError(element);
  const nested = joined(element.children, (child) => fromElement(child, own));
  if (!own) return nested;
  const attributes = [...element.attributes].filter(([name]) => TEXT.test(name)).map(([, text]) => text);
  const isCode = CODE.test(element.name);
  const texts = [...attributes, ...(element.text === '' || isCode ? [] : [element.text])];
  return joined([{ code: codeOf(element), texts: texts.map((text) => [text]) }, nested], (part) => part);
}

/** A code that stands in the text alone: `601`, or `601: The access token is no longer valid`. */
function codeInText(text: string): number | undefined {
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

function cleaned({ code, texts }: Part, hide: Hide): Said {
  const text = texts
    .map((pieces) =>
      pieces
        .map((piece) => clean(piece, hide))
        .join(': ')
        .slice(0, MAX_TEXT),
    )
    .filter((one) => one !== '')
    .join('; ')
    .slice(0, MAX_ALL);
  return { code: code ?? codeInText(text), text };
}

/** What an element says went wrong, or undefined where it says nothing of an error. */
export function saidByElements(elements: readonly XmlElement[], hide: Hide): Said | undefined {
  const part = joined(elements, (element) => fromElement(element, false));
  const said = part.code !== undefined || part.texts.length > 0 || elements.some(holdsError);
  return said ? cleaned(part, hide) : undefined;
}

function holdsError(element: XmlElement): boolean {
  return isError(element) || element.children.some(holdsError);
}

/** Whether a text that may be an answer tells of something that went wrong instead. */
export function readsAsFailure(text: string): boolean {
  const shown = text.slice(0, 2 * MAX_TEXT);
  return (
    /^false$|\b(?:errors?|fail(?:ed|ure|s)?|invalid|denied|forbidden|unauthori[sz]ed|not|cannot|could)\b/i.test(
      shown,
    ) ||
    (/\D/.test(shown) && codeInText(shown) !== undefined)
  );
}

/** Whether an object says nothing but a code, and perhaps what it means. */
function isOnlyError(entries: readonly [string, unknown][]): boolean {
  const codes = entries.map(([name, one]) => codeAt(name, one)).filter((code) => code !== undefined);
  const isExplained = entries.some(([name, one]) => TEXT.test(name) && typeof one === 'string');
  return isExplained ? codes.length > 0 && entries.length <= 4 : entries.length === 1 && isCommon(codes[0]);
}

/** The error in an answer; undefined where it reads as what was asked for. */
function errorIn(value: unknown, fields: readonly string[], depth = 0): Part | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || depth > MAX_DEPTH) return undefined;
  const entries: [string, unknown][] = Object.entries(value);
  const isResource = entries.some(([name]) => fields.includes(name) && !CODE.test(name) && !TEXT.test(name));
  if (!isResource && isOnlyError(entries)) return fromJson(value, false);
  const part = fromJson(Object.fromEntries(entries.filter(([name]) => ERROR.test(name))), true);
  if (part.code !== undefined || part.texts.length > 0) return part;
  if (isResource) return undefined;
  const wrapped = entries.filter(([name]) => WRAPPER.test(name));
  return wrapped.map(([, one]) => errorIn(one, fields, depth + 1)).find((one) => one !== undefined);
}

/**
 * What a JSON answer with a good status says went wrong: `errors` or `error` with something in it, or a code with a text;
 * a bare string, a list of them, a code alone. Undefined where it reads as an answer.
 * @param fields of what was asked for: an answer with one of them, other than a code or a text, is one
 */
export function saidByJson(value: unknown, fields: readonly string[], hide: Hide): Said | undefined {
  const isBare = typeof value === 'string' || isCommon(codeFrom(value)) || isList(value);
  const part = isBare ? fromJson(value, true) : errorIn(value, fields);
  return part === undefined ? undefined : cleaned(part, hide);
}

function isList(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0 && value.every((one) => typeof one === 'string');
}

/**
 * What an answer with a good status says went wrong where another type of answer was asked for, such as plain text or XML
 * in place of JSON: an error only if it holds a code. Broken JSON is broken, whatever it holds.
 */
export function saidInOther(text: string, hide: Hide): Said | undefined {
  if (/^\s*["[{]/.test(text)) return undefined;
  const said = saidIn(text, hide);
  return said.code === undefined ? undefined : said;
}

/** As `saidByJson`, of a text that may be no JSON. */
export function saidInAnswer(text: string, fields: readonly string[], hide: Hide): Said | undefined {
  try {
    return saidByJson(JSON.parse(text), fields, hide);
  } catch {
    return saidInOther(text, hide);
  }
}

/**
 * What a body says of an error, in any of its layouts.
 */
export function saidIn(body: string, hide: Hide): Said {
  const nothing = { code: undefined, text: '' };
  if (isPage(body)) return nothing;
  if (/^\s*</.test(body)) {
    try {
      return saidByElements(readXml(body), hide) ?? nothing;
    } catch (error) {
      if (error instanceof CatchwordError) return nothing;
      throw error;
    }
  }
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    // Broken JSON and plain text are shown as they are.
    return cleaned({ texts: [[body]] }, hide);
  }
  // What stands alone is what `errors` holds elsewhere.
  return cleaned(fromJson(value, typeof value !== 'object' || Array.isArray(value)), hide);
}

/** A page for people, such as a proxy's own. */
export function isPage(body: string): boolean {
  return !/^\s*["[{]/.test(body) && /<html|<!doctype/i.test(body);
}

/**
 * What the body of a refusal says. Where it holds nothing that is known to tell of errors, all its fields do:
 * `{"title": ["can't be blank"]}`.
 * @param body of an answer whose status is an error; an answer like any other would be taken for one
 */
export function saidInRefusal(body: string, hide: Hide): Said {
  const said = saidIn(body, hide);
  if (said.code !== undefined || said.text !== '' || !/^\s*\{/.test(body)) return said;
  return cleaned(fromJson(JSON.parse(body), true), hide);
}
