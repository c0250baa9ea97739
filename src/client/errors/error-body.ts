import { CatchwordError } from '../../errors.ts';
import { readXml, type XmlElement } from '../../xml/read.ts';
import type { Hide } from '../redact.ts';
import {
  cleaned,
  deniesSuccess,
  fromElement,
  fromJson,
  holdsError,
  isFailedState,
  joined,
  type Part,
  type Said,
} from './error-messages.ts';
import { CODE, codeAt, codeFrom, ERROR, isCommon, MAX_DEPTH, TEXT, WRAPPER } from './error-names.ts';
import { isNoError } from './success-words.ts';

/*
 * What the service says went wrong (interface, section 7). Neither layout nor status is laid down, so every layout that
 * has been seen is read, at every status: code and text as attributes, as child elements or as text, at the top or
 * nested; JSON with `errors`, with `error`, a bare JSON string, broken JSON, plain text, nothing. What differs is what is
 * an error at all: of a refusal everything is, of an answer with a good status only what says so.
 */

/**
 * What elements say went wrong, or undefined where they say nothing of an error.
 * @param told whether all that they say belongs to an error
 */
export function saidByElements(elements: readonly XmlElement[], hide: Hide, told = false): Said | undefined {
  const part = joined(elements, (element) => fromElement(element, told));
  const said = part.code !== undefined || part.texts.length > 0 || elements.some(holdsError);
  return said ? cleaned(part, hide) : undefined;
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
  const isFailed = entries.some(([name, one]) => isFailedState(name, one)) || isOnlyError(entries);
  const isDenied = entries.some(([name, one]) => deniesSuccess(name, one));
  if (isDenied || (isFailed && !isResource)) return fromJson(value, false);
  const errors = entries.filter(([name, one]) => ERROR.test(name) && !isNoError(one));
  if (errors.length > 0) {
    const part = fromJson(Object.fromEntries(errors), true);
    // `error: true` is explained beside it, if anywhere; of what was asked for, that may be a description.
    const isFlag = part.code === undefined && part.texts.length === 0 && !isResource;
    return isFlag ? fromJson(value, false) : part;
  }
  if (isResource) return undefined;
  const wrapped = entries.filter(([name]) => WRAPPER.test(name));
  return wrapped.map(([, one]) => errorIn(one, fields, depth + 1)).find((one) => one !== undefined);
}

/**
 * What a JSON answer with a good status says went wrong: `errors` or `error` with something in it, `success: false`, or a code
 * with a text; a bare string, a list of them, a code alone. Undefined where it reads as an answer.
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
 * What an answer with a good status says went wrong where another type of answer was asked for: XML in place of JSON if it
 * tells of an error, plain text only if it holds a code. Broken JSON is broken, whatever it holds.
 */
export function saidInOther(text: string, hide: Hide): Said | undefined {
  if (/^\s*["[{]/.test(text) || isPage(text)) return undefined;
  if (/^\s*</.test(text)) return saidInXml(text, hide, false);
  const said = saidIn(text, hide);
  return said.code === undefined ? undefined : said;
}

function saidInXml(text: string, hide: Hide, told: boolean): Said | undefined {
  try {
    return saidByElements(readXml(text), hide, told);
  } catch (error) {
    if (error instanceof CatchwordError) return undefined;
    throw error;
  }
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
 * @param told whether all that it says belongs to an error
 */
export function saidIn(body: string, hide: Hide, told = false): Said {
  const nothing = { code: undefined, text: '' };
  if (isPage(body)) return nothing;
  if (/^\s*</.test(body)) return saidInXml(body, hide, told) ?? nothing;
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    // Broken JSON and plain text are shown as they are.
    return cleaned({ texts: [[body]] }, hide);
  }
  // What stands alone is what `errors` holds elsewhere.
  return cleaned(fromJson(value, told || typeof value !== 'object' || Array.isArray(value)), hide);
}

/** A page for people, such as a proxy's own. */
export function isPage(body: string): boolean {
  return !/^\s*["[{]/.test(body) && /<html|<!doctype/i.test(body);
}

/**
 * What the body of a refusal says. Where it holds nothing that is known to tell of errors, all its fields do:
 * `{"title": ["can't be blank"]}`, `<user><email>is taken</email></user>`.
 * @param body of an answer whose status is an error; an answer like any other would be taken for one
 */
export function saidInRefusal(body: string, hide: Hide): Said {
  const said = saidIn(body, hide);
  return said.code === undefined && said.text === '' ? saidIn(body, hide, true) : said;
}
