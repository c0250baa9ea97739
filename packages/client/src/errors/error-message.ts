import type { Hide } from '@catchword/base/redact';
import { fieldsOf } from '@catchword/catalog/field-values';
import { codeIn, errorsIn, wordsIn } from '@catchword/catalog/said-error';
import { readXml, type XmlElement } from '@catchword/xml/read';

/*
 * Reads an error of the service: a code and a text (interface, section 7). The interface does not show its layout. Live
 * services write these:
 *
 * - XML: an element `error` or `error-response`, at any depth, with attributes, child elements or a text.
 * - JSON: `{"errors": ["text", …]}`. With a status that is an error, also one text, as JSON or plain, and what frameworks
 *   and gateways write: `message`, `detail`, a problem document (RFC 9457).
 *
 * A body of any other layout has neither code nor text: its status decides, and the error of a write says to check first.
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
/** Characters. Longer answers hold no error that a person could read. */
const MAX_CHARS = 2 ** 20;

const ERRORS = ['error', 'error-response'];
const CODES = ['code', 'error-code'];
const TEXTS = ['message', 'error-text', 'description'];

function clean(line: string, hide: Hide): string {
  return hide(line, 2 * MAX_LINE)
    .replace(/[\p{Cc}\s]+/gu, ' ')
    .trim()
    .slice(0, MAX_LINE);
}

/** @param code as the service wrote it; in JSON, 601 may be in the text */
function messageOf(texts: readonly string[], hide: Hide, code = ''): ServiceMessage {
  const lines = texts.slice(0, MAX_LINES);
  const all = lines.join('; ').slice(0, MAX_TEXT);
  const inText = /\b601\b/.test(all) && /token/i.test(all) ? 601 : undefined;
  const shown = lines.map((line) => clean(line, hide)).filter((line) => line !== '');
  return {
    code: /^\s*[1-9]\d{2,4}\s*$/.test(code) ? Number(code) : inText,
    text: shown.join('; ').slice(0, MAX_TEXT),
  };
}

function fieldOf({ attributes, children }: XmlElement, names: readonly string[]): string | undefined {
  return names
    .map((name) => attributes.get(name) || children.find((child) => child.name === name)?.text)
    .find((value) => value);
}

function errorElements(elements: readonly XmlElement[]): XmlElement[] {
  return elements.flatMap((one) => (ERRORS.includes(one.name) ? [one] : errorElements(one.children)));
}

/** The errors anywhere in these elements, as one. */
export function errorInXml(elements: readonly XmlElement[], hide: Hide): ServiceMessage | undefined {
  const errors = errorElements(elements);
  if (errors.length === 0) return undefined;
  const code = errors.map((one) => fieldOf(one, CODES)).find((one) => one !== undefined);
  const texts = errors.map((one) => fieldOf(one, TEXTS) ?? one.text);
  return messageOf(texts, hide, code);
}

/** Errors of another type than text are shown as JSON. Empty ones, such as `"errors": []` and `"error": null`, are ignored. */
export function errorInJson(value: unknown, hide: Hide): ServiceMessage | undefined {
  const fields = fieldsOf(value);
  const texts = errorsIn(fields);
  return texts.length === 0 ? undefined : messageOf(texts, hide, `${codeIn(fields) ?? ''}`);
}

/** What an element of a list says. Its other members may be secret. */
function textIn(one: unknown): string {
  return typeof one === 'string' ? one : wordsIn(fieldsOf(one)).join(', ');
}

/** What an object says that is known to be an error, or may be one. The other members of a product are its own. */
function wordsInJson(value: unknown, hide: Hide): ServiceMessage {
  const all = Array.isArray(value) ? { errors: value.map(textIn) } : fieldsOf(value);
  const fields = 'vbid' in all ? { errors: all.errors, error: all.error } : all;
  const errors = errorsIn(fields);
  const words = wordsIn(fields).filter((word) => !errors.includes(word));
  return messageOf([...errors, ...words], hide, `${codeIn(fields) ?? ''}`);
}

/** A page for people, such as the error page of a proxy. */
export function isPage(body: string): boolean {
  return !/^\s*["[{]/.test(body) && /<html|<!doctype/i.test(body);
}

export function isXml(body: string): boolean {
  return /^\s*</.test(body);
}

/** What a body says: an error of a known layout, or one text; otherwise nothing. */
export function messageIn(body: string, hide: Hide): ServiceMessage {
  const nothing = messageOf([], hide);
  if (body.length > MAX_CHARS || isPage(body)) return nothing;
  try {
    if (isXml(body)) return errorInXml(readXml(body), hide) ?? nothing;
    const value = JSON.parse(body) as string | number | boolean | object | null;
    return typeof value === 'object' ? wordsInJson(value, hide) : messageOf([`${value}`], hide);
  } catch {
    // Broken XML and JSON say nothing; anything else is a plain text.
    return /^\s*["[{<]/.test(body) ? nothing : messageOf([body], hide);
  }
}
