import type { ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Clock } from '../../clock.ts';
import { writeXml, type XmlTree } from '../../xml/write.ts';
import type { FaultKind } from './faults.ts';

/** What an operation answers, before it is sent (and perhaps damaged on the way). */
export interface Answer {
  readonly status: number;
  readonly body: string;
  /** Default: application/json. */
  readonly contentType?: string;
  /** Whole seconds. */
  readonly retryAfter?: number;
}

/** For comfort: nobody reads more. */
const MAX_ERRORS = 100;

/** In JSON. @param errors of many, the first hundred are told, and how many more there are */
export function errorAnswer(status: number, errors: string | readonly string[]): Answer {
  const all = typeof errors === 'string' ? [errors] : errors;
  const more = all.length > MAX_ERRORS ? [`… and ${all.length - MAX_ERRORS} more`] : [];
  return { status, body: JSON.stringify({ errors: [...all.slice(0, MAX_ERRORS), ...more] }) };
}

/** The content type of the v3 operations. */
const XML = 'application/xml; charset=utf-8';

/** A document of the v3 operations. */
export function xmlAnswer(status: number, root: XmlTree): Answer {
  return { status, body: writeXml(root), contentType: XML };
}

/** What the service says of a request that it does not serve, in the operation's language. `code`: default: the status. */
export function refusalAnswer(format: 'json' | 'xml', status: number, message: string, code = status): Answer {
  if (format === 'json') return errorAnswer(status, message);
  return xmlAnswer(status, { name: 'error', attributes: { code: String(code), message } });
}

/** The answer that takes the place of a good one; null where the fault is of another kind. */
export function faultAnswer(fault: FaultKind | null, request: number): Answer | null {
  if (fault === '5xx') return errorAnswer([500, 502, 503][request % 3] ?? 500, 'Something went wrong');
  if (fault === '429') return { ...errorAnswer(429, 'Too many requests'), retryAfter: 1 };
  if (fault !== 'html') return null;
  const body = '<!doctype html><html><head><title>Maintenance</title></head><body><h1>Back soon</h1></body></html>';
  return { status: 200, body, contentType: 'text/html; charset=utf-8' };
}

export interface Sending {
  readonly acceptEncoding: string | string[] | undefined;
  /** Of the kinds that damage a body on its way; others change nothing here. */
  readonly fault: FaultKind | null;
  /** How long the fault `slow-body` takes. */
  readonly slowBodyMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

const compress = promisify(gzip);
const SLOW_BODY_PIECES = 20;

/** Whether a client takes gzip: it is named, and not with `q=0`. */
export function acceptsGzip(header: string | string[] | undefined): boolean {
  return /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i.test(String(header ?? ''));
}

function firstHalf(body: Buffer): Buffer {
  return body.subarray(0, body.length >>> 1);
}

function write(response: ServerResponse, piece: Buffer): Promise<void> {
  return new Promise((resolve) => {
    // A connection that the client has closed is no concern of the sandbox.
    response.write(piece, () => resolve());
  });
}

async function trickle(response: ServerResponse, body: Buffer, sending: Sending): Promise<void> {
  const size = Math.ceil(body.length / SLOW_BODY_PIECES);
  for (let start = 0; start < body.length && !response.destroyed; start += size) {
    await write(response, body.subarray(start, start + size));
    await sending.clock.sleep(sending.slowBodyMs / SLOW_BODY_PIECES, sending.signal);
  }
  response.end();
}

/** Compresses where the client takes it, damages where a fault says so, and sends. */
export async function sendAnswer(response: ServerResponse, answer: Answer, sending: Sending): Promise<void> {
  const { fault } = sending;
  // A proxy that breaks gzip may well have added it unasked.
  const zipped = acceptsGzip(sending.acceptEncoding) || fault === 'truncated-gzip';
  const plain = Buffer.from(answer.body);
  const whole = fault === 'truncated-json' ? firstHalf(plain) : plain;
  const encoded = zipped ? await compress(whole, { level: 1 }) : whole;
  const body = fault === 'truncated-gzip' ? firstHalf(encoded) : encoded;
  response.writeHead(answer.status, {
    'Content-Type': answer.contentType ?? 'application/json',
    'Content-Length': body.length,
    ...(zipped && { 'Content-Encoding': 'gzip' }),
    ...(answer.retryAfter !== undefined && { 'Retry-After': answer.retryAfter }),
  });
  if (fault === 'reset') {
    await write(response, firstHalf(body));
    response.socket?.resetAndDestroy();
  } else if (fault === 'slow-body') await trickle(response, body, sending);
  else response.end(body);
}
