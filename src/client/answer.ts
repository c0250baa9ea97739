import { CatchwordError } from '../errors.ts';
import { readXml, type XmlElement } from '../xml/read.ts';
import type { Headers } from './body.ts';
import { mayExist } from './may-exist.ts';
import { serviceError } from './refusal.ts';
import { saidByJson, saidIn, saidInOther } from './said.ts';
import { WRAPPER } from './said-names.ts';
import type { Said } from './said-part.ts';
import { readsAsDone } from './said-success.ts';
import type { Hide } from './secrets.ts';
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
  /** The error that an accepted status stands for. */
  readonly refusal?: CatchwordError;
}

export interface XmlAnswer {
  readonly status: number;
  /** The elements at the top; none where the body is empty or plain text. Errors in it are left to the operation. */
  readonly elements: readonly XmlElement[];
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
}

/** Characters. */
const MAX_IDENTIFIER = 255;

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

/** What was made although something else went wrong: whoever does not know of it makes it twice. */
function madeIn(value: unknown, field: string): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const entries: [string, unknown][] = Object.entries(value);
  const [, made] = entries.find(([name]) => name === field) ?? [];
  if (typeof made === 'number' || (typeof made === 'string' && made.trim() !== '')) return String(made);
  const wrapped = entries.filter(([name]) => WRAPPER.test(name));
  return wrapped.map(([, one]) => madeIn(one, field)).find((one) => one !== undefined);
}

function withMade(error: CatchwordError, value: unknown, { creates, hide }: Reading): CatchwordError {
  const made = creates === undefined ? undefined : madeIn(value, creates);
  if (made === undefined) return error;
  return mayExist(error, `${creates} ${hide(made, MAX_IDENTIFIER)}`);
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
  const { freeform = false, fields = [], hide, origin } = reading;
  const about = { status, headers, text, ...(refusal !== undefined && { refusal }) };
  if (text.trim() === '') return { ...about, value: undefined };
  const value = freeform ? parsedOrText(text) : parsed(text);
  if (freeform && refusal === undefined && typeof value === 'string' && readsAsDone(value)) {
    return { ...about, value };
  }
  const said = value === undefined ? saidInNoJson(text, hide) : saidByJson(value, fields, hide);
  if (said !== undefined) throw withMade(refuse(answer, said, reading), value, reading);
  if (value === undefined) throw refusal ?? broken(status, origin);
  return { ...about, value };
}

/** @throws CatchwordError XML_INVALID, and SERVICE_* for an error in another layout than XML; as `jsonAnswer` */
export function xmlAnswer(answer: Answer, reading: Reading): XmlAnswer {
  const { status, text, refusal } = answer;
  const { hide } = reading;
  // Some report errors of XML operations as JSON, or as plain text.
  if (/^\s*["[{]/.test(text)) {
    jsonAnswer(answer, { ...reading, freeform: false });
    throw refuse(answer, { code: undefined, text: 'JSON in place of XML' }, reading);
  }
  const said = /^\s*</.test(text) ? undefined : saidInOther(text, hide);
  if (said !== undefined) throw refuse(answer, said, reading);
  try {
    return { status, hide, elements: readXml(text), ...(refusal !== undefined && { refusal }) };
  } catch (error) {
    throw refusal ?? error;
  }
}
