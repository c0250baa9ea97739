import { CatchwordError } from '@catchword/base/errors';
import { scanPage } from '@catchword/catalog/cut-page';
import { readXml, type XmlElement } from '@catchword/xml/read';
import { errorInJson, errorInXml, isPage, isXml, messageIn, type ServiceMessage } from '../errors/error-message.ts';
import { serviceError } from '../errors/service-error.ts';
import { checkFirst } from '../errors/uncertain-write.ts';
import type { Answer, Request } from './exchange.ts';
import { objectOfXml } from './xml-object.ts';

export type JsonObject = Readonly<Record<string, unknown>>;

export interface ParsedAnswer extends Answer {
  /** Of JSON, or of XML in its place; undefined if the body is empty. It has no error. */
  readonly value: JsonObject | undefined;
  /** Of XML: the elements at the top; none if the body is empty or not XML. They may have an error. */
  readonly elements: readonly XmlElement[];
}

export type XmlAnswer = Pick<ParsedAnswer, 'status' | 'elements' | 'text' | 'hide' | 'refusal' | 'origin'>;

/** Deeper JSON could overflow the stack of code that walks through it; a real answer is a few levels deep. */
const MAX_JSON_DEPTH = 64;
/** Characters of an identifier that an error shows. */
export const MAX_IDENTIFIER = 255;

/**
 * The error of an answer with a good status that is not what was asked for. It names what a write created all the same;
 * otherwise it says to check first.
 */
function failed(
  message: ServiceMessage,
  answer: Answer,
  request: Request,
  value: unknown,
  isError = true,
): CatchwordError {
  const { origin, status, hide } = answer;
  const { method, creates } = request;
  const { text, code } = message;
  const isSilent = code === undefined && (!isError || text === '');
  const nothing = `${origin} answered with neither a result nor an error${text === '' ? '' : `: “${text}”`}`;
  const silent = { message: nothing, hint: 'Ask the service about it.' };
  const error = serviceError(message, status, origin).with(isSilent ? silent : {});
  if (method === 'GET') return error;
  const created = creates === undefined ? undefined : (value as JsonObject | undefined)?.[creates];
  const isShown = typeof created === 'string' || typeof created === 'number';
  return checkFirst(error, request, isShown ? `${creates} ${hide(`${created}`, MAX_IDENTIFIER)}` : undefined);
}

function jsonIn({ text, origin, status }: Answer): unknown {
  try {
    return JSON.parse(text);
  } catch {
    if (!/^\s*["[{]/.test(text)) return text;
    const hint = 'Retry later: the service may be in trouble.';
    throw new CatchwordError('SOURCE_BODY', `${origin} answered ${status} with broken JSON`, { hint, status });
  }
}

/** Whether an object has a field of what was asked for. A description may belong to an error. */
function isResult(value: object, fields: readonly string[]): boolean {
  return Object.keys(value).some((name) => name !== 'description' && fields.includes(name));
}

/** The object of an answer. A write is done if it is empty, or has a field of what was written. */
function readJson(answer: Answer, request: Request): JsonObject | undefined {
  const { text, hide, origin } = answer;
  const { method, fields = [] } = request;
  if (text.trim() === '') return undefined;
  const elements = isXml(text) && !isPage(text) ? readXml(text) : null;
  const value = isXml(text) ? objectOfXml(elements ?? [], fields) : jsonIn(answer);
  if (value === null) return undefined;
  const isObject = typeof value === 'object' && !Array.isArray(value);
  if (isObject && !isXml(text) && scanPage(Buffer.from(text), MAX_JSON_DEPTH) === null) {
    const message = `${origin} answered with JSON nested deeper than ${MAX_JSON_DEPTH} levels`;
    throw new CatchwordError('SOURCE_BODY', message, { hint: 'Ask the service about it.', retryable: false });
  }
  const error = elements === null ? errorInJson(value, hide) : errorInXml(elements, hide);
  if (error !== undefined) throw failed(error, answer, request, value);
  const isUnclear = !isObject || (method !== 'GET' && Object.keys(value).length > 0 && !isResult(value, fields));
  if (isUnclear) throw failed(messageIn(text, hide), answer, request, value, !isObject);
  return value as JsonObject;
}

/** A 601 may come with a good status (interface, section 7), and so may a 429. The page itself is judged where it is parsed. */
function checkPage({ text, status, hide, origin }: Answer): void {
  if (!/601|429/.test(text)) return;
  const error = messageIn(text, hide);
  if (error.code === 601 || error.code === 429) throw serviceError(error, status, origin);
}

/** @throws CatchwordError SERVICE_* for an error in JSON, SOURCE_BODY for broken JSON, XML_INVALID */
export function parseAnswer(answer: Answer, request: Request): ParsedAnswer {
  const { format } = request;
  if (format === 'page') checkPage(answer);
  const value = format === 'json' ? readJson(answer, request) : undefined;
  if (format !== 'xml' || !isXml(answer.text)) return { ...answer, value, elements: [] };
  try {
    return { ...answer, value, elements: readXml(answer.text) };
  } catch (error) {
    throw answer.refusal ?? error;
  }
}

/** The object that a read found. @throws CatchwordError SERVICE_ERROR if it has no field with a value */
export function requireFields({ value, origin, status }: ParsedAnswer, path: string): JsonObject {
  if (value !== undefined && Object.values(value).some((one) => one !== null)) return value;
  throw new CatchwordError('SERVICE_ERROR', `${origin} answered with nothing`, {
    hint: `Check that ${path} is the path of this operation.`,
    status,
  });
}
