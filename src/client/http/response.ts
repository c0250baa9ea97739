import { CatchwordError } from '../../errors.ts';
import { readXml, type XmlElement } from '../../xml/read.ts';
import { saidByJson, saidIn, saidInOther } from '../errors/error-body.ts';
import type { Said } from '../errors/error-messages.ts';
import { serviceError } from '../errors/service-error.ts';
import { readsAsDone } from '../errors/success-words.ts';
import { lookFirst, namingMade } from '../errors/uncertain-write.ts';
import type { Hide } from '../redact.ts';
import type { Headers } from './response-body.ts';
import type { Answer } from './transport.ts';

/*
 * What the answer to an operation holds, once its status is known to be good or to be accepted. An error may be in it all
 * the same (interface, section 7).
 */

export interface JsonAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** Undefined where the body is empty. */
  readonly value: unknown;
  readonly text: string;
  /** Shows what it says without secrets. */
  readonly hide: Hide;
  /** The error that an accepted status stands for. */
  readonly refusal?: CatchwordError;
}

export interface XmlAnswer {
  readonly status: number;
  /** The elements at the top; none where the body is empty or plain text. Errors in it are left to the operation. */
  readonly elements: readonly XmlElement[];
  /** As received, where it is no XML. */
  readonly plain?: string | undefined;
  /** Shows what it says without secrets. */
  readonly hide: Hide;
  /** The error that an accepted status stands for. */
  readonly refusal?: CatchwordError | undefined;
}

/** How an answer is read; see `Call`. */
export interface Reading {
  readonly origin: string;
  readonly hide: Hide;
  readonly freeform?: boolean | undefined;
  readonly fields?: readonly string[] | undefined;
  readonly creates?: string | undefined;
  /** Of the operation: may hold the identifier of what is written. */
  readonly path: string;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A number or a boolean alone is text as well. What begins as JSON or as a page, and is none, is broken. */
function parsedOrText(text: string): unknown {
  return /^\s*["[{<]|^\s*null\s*$/.test(text) ? parsed(text) : text.trim();
}

function broken(status: number, origin: string): CatchwordError {
  return new CatchwordError('SOURCE_BODY', `${origin} answered ${status} with broken JSON`, {
    hint: 'The service may have trouble; try again later.',
    status,
  });
}

/** A text for people, which is neither broken JSON nor a page. */
function isPlain(text: string): boolean {
  return !/^\s*["[{<]/.test(text);
}

function refuse({ status, refusal }: Answer, said: Said, { origin }: Reading): CatchwordError {
  return refusal ?? serviceError(said, status, origin);
}

function saidInNoJson(text: string, hide: Hide): Said | undefined {
  return isPlain(text) ? saidIn(text, hide) : saidInOther(text, hide);
}

/** @throws CatchwordError SERVICE_* for an error in it, SOURCE_BODY for broken JSON; the refusal of an accepted status */
export function jsonAnswer(answer: Answer, reading: Reading): JsonAnswer {
  const { status, headers, text, refusal } = answer;
  const { freeform = false, fields = [], hide, origin, creates, path } = reading;
  const about = { status, headers, text, hide, ...(refusal !== undefined && { refusal }) };
  if (text.trim() === '') return { ...about, value: undefined };
  const value = freeform ? parsedOrText(text) : parsed(text);
  const isOwn = (one: string): boolean => creates !== undefined || path.split('/').includes(encodeURIComponent(one));
  if (freeform && refusal === undefined && typeof value === 'string' && readsAsDone(value, isOwn)) {
    return { ...about, value };
  }
  const said = value === undefined ? saidInNoJson(text, hide) : saidByJson(value, fields, hide);
  if (said !== undefined) throw namingMade(refuse(answer, said, reading), value, creates, hide);
  if (value === undefined) throw refusal ?? broken(status, origin);
  return { ...about, value };
}

/** @throws CatchwordError XML_INVALID, and SERVICE_* for an error in another layout than XML; as `jsonAnswer` */
export function xmlAnswer(answer: Answer, reading: Reading): XmlAnswer {
  const { status, text, refusal } = answer;
  const { hide, creates } = reading;
  // Some report errors of XML operations as JSON, or as plain text.
  if (/^\s*["[{]/.test(text)) {
    const { value } = jsonAnswer(answer, { ...reading, freeform: false });
    const error = refuse(answer, { code: undefined, text: 'JSON in place of XML' }, reading);
    const named = namingMade(error, value, creates, hide);
    throw named === error && creates !== undefined ? lookFirst(error) : named;
  }
  const plain = /^\s*</.test(text) ? undefined : text.trim();
  const said = plain === undefined ? undefined : saidInOther(text, hide);
  if (said !== undefined) throw refuse(answer, said, reading);
  try {
    return { status, hide, elements: readXml(text), plain, ...(refusal !== undefined && { refusal }) };
  } catch (error) {
    throw refusal ?? error;
  }
}
