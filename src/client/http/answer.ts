import { cutPage } from '../../catalog/cut-page.ts';
import { CatchwordError } from '../../errors.ts';
import { readXml, type XmlElement } from '../../xml/read.ts';
import { errorIn, isResult, messageIn, type ServiceMessage } from '../errors/error-message.ts';
import { isPage, type Tree, textIn, treeOfBody } from '../errors/error-tree.ts';
import { serviceError } from '../errors/service-error.ts';
import { alsoCreated, checkFirst } from '../errors/uncertain-write.ts';
import type { Answer, Request } from './exchange.ts';
import { objectOfXml } from './xml-object.ts';

export type JsonObject = Readonly<Record<string, unknown>>;

/** An answer as its operation reads it. */
export interface ParsedAnswer extends Answer {
  /** Of JSON, or of XML in its place; undefined if the body is empty. It has no error. */
  readonly value: JsonObject | undefined;
  /** Of XML: the elements at the top; none if the body is empty or not XML. They may have an error. */
  readonly elements: readonly XmlElement[];
}

/** What is read of an XML answer. */
export type XmlAnswer = Pick<ParsedAnswer, 'status' | 'elements' | 'text' | 'hide' | 'refusal' | 'origin'>;

/** Deeper JSON could overflow the stack of code that walks through it; a real answer is a few levels deep. */
const MAX_JSON_DEPTH = 64;
/** Characters of an identifier that an error shows. */
const MAX_IDENTIFIER = 255;
/** Fields of a page of the catalog, and of a product. */
const PAGE_FIELDS = ['items', 'vbid'];

/** The error of an answer; it names what was created all the same. */
function errorOf(message: ServiceMessage, answer: Answer, request: Request, tree: Tree): CatchwordError {
  const error = answer.refusal ?? serviceError(message, answer.status, answer.origin);
  const created = request.creates === undefined ? undefined : textIn(tree, request.creates);
  if (created === undefined) return error;
  return alsoCreated(error, `${request.creates} ${answer.hide(created, MAX_IDENTIFIER)}`);
}

function saysNothing({ origin }: Answer) {
  return {
    message: `${origin} answered with neither a result nor an error`,
    hint: 'Ask the service about it.',
  };
}

/** The error of an answer that is not what was asked for. It does not show whether a write was done. */
function unknownAnswer(answer: Answer, request: Request, tree: Tree): CatchwordError {
  const message = messageIn(tree, answer.hide);
  const found = errorOf(message, answer, request, tree);
  const isSilent = message.text === '' && message.code === undefined && answer.refusal === undefined;
  const error = isSilent ? found.with(saysNothing(answer)) : found;
  return request.method === 'GET' ? error : checkFirst(error, request);
}

/** The value of an answer in JSON or XML; undefined if it is neither. */
function bodyValue({ text, origin, status, refusal }: Answer, fields: readonly string[]): unknown {
  if (/^\s*</.test(text)) return isPage(text) ? undefined : objectOfXml(readXml(text), fields);
  try {
    return JSON.parse(text);
  } catch {
    if (!/^\s*["[{]/.test(text)) return undefined;
    const hint = 'Retry later: the service may be in trouble.';
    const broken = `${origin} answered ${status} with broken JSON`;
    throw refusal ?? new CatchwordError('SOURCE_BODY', broken, { hint, status });
  }
}

/** The object of an answer. A write is done if it is empty, or has a field of what was written. */
function readJson(answer: Answer, request: Request): JsonObject | undefined {
  const { text, hide, origin } = answer;
  const { method, fields = [] } = request;
  if (text.trim() === '') return undefined;
  const tree = treeOfBody(text);
  const error = errorIn(tree, fields, hide);
  if (error !== undefined) throw errorOf(error, answer, request, tree);
  const value = bodyValue(answer, fields);
  if (value === null) return undefined;
  if (typeof value !== 'object' || Array.isArray(value)) throw unknownAnswer(answer, request, tree);
  if (!/^\s*</.test(text) && cutPage(Buffer.from(text), MAX_JSON_DEPTH) === null) {
    const message = `${origin} answered with JSON nested deeper than ${MAX_JSON_DEPTH} levels`;
    throw new CatchwordError('SOURCE_BODY', message, { hint: 'Ask the service about it.', retryable: false });
  }
  const names = Object.keys(value);
  if (method !== 'GET' && names.length > 0 && !isResult(names, fields)) throw unknownAnswer(answer, request, tree);
  return value as JsonObject;
}

/** A 601 may come with a good status (interface, section 7). */
function checkPage({ text, status, hide, origin }: Answer): void {
  if (!text.includes('601')) return;
  const error = errorIn(treeOfBody(text), PAGE_FIELDS, hide);
  if (error?.code === 601) throw serviceError(error, status, origin);
}

/** @throws CatchwordError SERVICE_* for an error in JSON, SOURCE_BODY for broken JSON, XML_INVALID */
export function parseAnswer(answer: Answer, request: Request): ParsedAnswer {
  const { format } = request;
  if (format === 'page') checkPage(answer);
  const value = format === 'json' ? readJson(answer, request) : undefined;
  if (format !== 'xml' || !/^\s*</.test(answer.text)) return { ...answer, value, elements: [] };
  try {
    return { ...answer, value, elements: readXml(answer.text) };
  } catch (error) {
    throw answer.refusal ?? error;
  }
}

/**
 * The object that a read found.
 * @param path of the operations, for the hint
 * @throws CatchwordError SERVICE_ERROR if it has no field with a value
 */
export function requireFields({ value, origin, status }: ParsedAnswer, path: string): JsonObject {
  if (value !== undefined && Object.values(value).some((one) => one !== null)) return value;
  throw new CatchwordError('SERVICE_ERROR', `${origin} answered with nothing`, {
    hint: `Check that ${path} is the path of this operation.`,
    status,
  });
}
