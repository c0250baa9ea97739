import { CatchwordError } from '../errors.ts';
import { readXml, type XmlElement } from '../xml/read.ts';

/*
 * What the service says went wrong (interface, section 7). Neither layout nor status is laid down, so every layout that
 * has been seen is read: code and text as attributes, as child elements or as text, at the top or nested; JSON with
 * `errors`, with `error`, a bare JSON string, broken JSON, plain text, nothing.
 */
export interface Said {
  /** The service's own code, such as 601. */
  readonly code: number | undefined;
  /** Without control characters, at most 200 characters of each message and 4,000 in all; may be empty. */
  readonly text: string;
}

const MAX_TEXT = 200;
/** A 422 has a message for each field that is wrong; whoever has to correct them needs them all. */
const MAX_ALL = 4_000;
const MAX_DEPTH = 6;
/** For safety: a field name is put before every text in it, so a small body could make a very large message. */
const MAX_PARTS = 100;

const CODE = /^(?:(?:error|custom|status)[-_]?)?code$/i;
const TEXT = /^(?:error[-_]?)?(?:message|description|text|details?|reason)$/i;
const ERROR = /^(?:errors?|exceptions?|faults?)$/i;
const CONTAINER = /^(?:errors?|exceptions?|faults?|response|data|result)$/i;

/** A piece of what is said, before it is joined. */
interface Part {
  readonly code?: number | undefined;
  readonly texts: readonly string[];
}

/** Codes of success are none of an error. */
function codeFrom(value: unknown): number | undefined {
  if (typeof value !== 'string' && typeof value !== 'number') return undefined;
  return /^\s*(?!2\d\d\s*$)[1-9]\d{2,4}\s*$/.test(String(value)) ? Number(value) : undefined;
}

/** The first code, and the first texts. */
function joined<Item>(items: Iterable<Item>, read: (item: Item) => Part): Part {
  let code: number | undefined;
  const texts: string[] = [];
  for (const item of items) {
    const part = read(item);
    code ??= part.code;
    texts.push(...part.texts.slice(0, MAX_PARTS - texts.length));
    if (code !== undefined && texts.length >= MAX_PARTS) break;
  }
  return { code, texts };
}

/** White space goes when it is cleaned, so some more than is shown. */
function cut(text: string): string {
  return text.slice(0, 2 * MAX_TEXT);
}

/** @param told whether all that is found belongs to an error, field names among it */
function fromJson(value: unknown, told: boolean, depth = 0): Part {
  if (typeof value === 'string') return { texts: told ? [cut(value)] : [] };
  if (typeof value === 'number') return { code: told ? codeFrom(value) : undefined, texts: [] };
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return { texts: [] };
  if (Array.isArray(value)) return joined(value, (one) => fromJson(one, told, depth + 1));
  return joined(Object.entries(value), ([name, one]: [string, unknown]) => {
    if (CODE.test(name)) return { code: codeFrom(one), texts: [] };
    if (TEXT.test(name)) return fromJson(one, true, depth + 1);
    if (CONTAINER.test(name)) return fromJson(one, told || ERROR.test(name), depth + 1);
    // `{"errors": {"title": ["is missing"]}}`: the field is half of what is said.
    const { texts } = told ? fromJson(one, true, depth + 1) : { texts: [] };
    return { texts: texts.map((text) => cut(`${cut(name)}: ${text}`)) };
  });
}

function codeOf({ attributes, children }: XmlElement): number | undefined {
  const attribute = [...attributes].find(([name]) => CODE.test(name));
  return codeFrom(attribute?.[1] ?? children.find(({ name }) => CODE.test(name))?.text);
}

function isError(element: XmlElement): boolean {
  return ERROR.test(element.name) || codeOf(element) !== undefined;
}

function fromElement(element: XmlElement, told: boolean): Part {
  const own = told || isError(element);
  const nested = joined(element.children, (child) => fromElement(child, own));
  if (!own) return nested;
  const attributes = [...element.attributes].filter(([name]) => TEXT.test(name)).map(([, text]) => text);
  const isCode = CODE.test(element.name);
  const texts = [...attributes, ...(element.text === '' || isCode ? [] : [element.text])];
  return joined([{ code: codeOf(element), texts: texts.map(cut) }, nested], (part) => part);
}

function cleaned({ code, texts }: Part): Said {
  const text = texts
    .map((one) =>
      one
        .replace(/[\p{Cc}\s]+/gu, ' ')
        .trim()
        .slice(0, MAX_TEXT),
    )
    .filter((one) => one !== '')
    .join('; ')
    .slice(0, MAX_ALL);
  return { code, text };
}

/** What an element says went wrong, or undefined where it says nothing of an error. */
export function saidByElements(elements: readonly XmlElement[]): Said | undefined {
  const part = joined(elements, (element) => fromElement(element, false));
  const said = part.code !== undefined || part.texts.length > 0 || elements.some(holdsError);
  return said ? cleaned(part) : undefined;
}

function holdsError(element: XmlElement): boolean {
  return isError(element) || element.children.some(holdsError);
}

/** Whether a text that may be an answer tells of something that went wrong instead. */
export function readsAsFailure(text: string): boolean {
  return /^false$|\b(?:errors?|fail(?:ed|ure|s)?|invalid|denied|forbidden|unauthori[sz]ed|not|cannot|could)\b/i.test(
    cut(text),
  );
}

/**
 * What a JSON answer with a good status says went wrong: `errors` or `error` with something in it, or a code with a text.
 * Undefined where it reads as an answer.
 * @param fields of what was asked for: an answer with one of them, other than a code or a text, is one
 */
export function saidByJson(value: unknown, fields: readonly string[] = []): Said | undefined {
  if (typeof value === 'string') return cleaned({ texts: [value] });
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const entries: [string, unknown][] = Object.entries(value);
  const errors = entries.filter(([name]) => ERROR.test(name));
  const part = fromJson(Object.fromEntries(errors), true);
  const coded = entries.some(([name, one]) => CODE.test(name) && codeFrom(one) !== undefined);
  const explained = entries.some(([name, one]) => TEXT.test(name) && typeof one === 'string');
  const isResource = entries.some(([name]) => fields.includes(name) && !CODE.test(name) && !TEXT.test(name));
  if (coded && explained && !isResource && entries.length <= 4) return cleaned(fromJson(value, false));
  return part.code !== undefined || part.texts.length > 0 ? cleaned(part) : undefined;
}

/** A code that stands in the text alone: `601: The access token is no longer valid`. */
function codeInText({ code, text }: Said): Said {
  return code === undefined && /\b601\b/.test(text) && /token/i.test(text) ? { code: 601, text } : { code, text };
}

/**
 * What a body says of an error, in any of its layouts.
 */
export function saidIn(body: string): Said {
  const nothing = { code: undefined, text: '' };
  if (/<html|<!doctype/i.test(body)) return nothing;
  if (/^\s*</.test(body)) {
    try {
      return codeInText(saidByElements(readXml(body)) ?? nothing);
    } catch (error) {
      if (error instanceof CatchwordError) return nothing;
      throw error;
    }
  }
  try {
    return codeInText(cleaned(fromJson(asErrors(JSON.parse(body)), false)));
  } catch {
    // Broken JSON and plain text are shown as they are.
    return codeInText(cleaned({ texts: [body] }));
  }
}

/**
 * What the body of a refusal says. Where it holds nothing that is known to tell of errors, all its fields do:
 * `{"title": ["can't be blank"]}`.
 * @param body of an answer whose status is an error; an answer like any other would be taken for one
 */
export function saidInRefusal(body: string): Said {
  const said = saidIn(body);
  if (said.code !== undefined || said.text !== '' || !/^\s*\{/.test(body)) return said;
  return codeInText(cleaned(fromJson(JSON.parse(body), true)));
}

/** A bare string, or a list of them, is what `errors` holds elsewhere. */
function asErrors(value: unknown): unknown {
  return typeof value === 'string' || Array.isArray(value) ? { errors: value } : value;
}
