import { CatchwordError, messageOf } from '@catchword/base/errors';
import type { Hide } from '@catchword/base/redact';
import type { Headers } from '../headers.ts';
import { secretsInAddresses } from './address-secrets.ts';

/**
 * A request of the service, and what its answers mean. Every layer passes it on as a whole.
 * @rule 4.1-6, 4.1-11, 5-5
 */
export interface Request {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Path below the base address, such as `/v4/assets/:vbid`. */
  readonly path: string;
  /** Values of the `:name` segments of the path. */
  readonly values?: Readonly<Record<string, unknown>>;
  readonly query?: URLSearchParams;
  /** A string is sent as it is, anything else as JSON. */
  readonly body?: unknown;
  /** Parts of the body that no error may repeat, such as a password. */
  readonly secrets?: readonly string[];
  /** What the request is about, such as `asset 9781402894626`; errors start with it. */
  readonly subject?: string;
  /** v3 operations exchange XML, v4 operations JSON. `page`: JSON of the catalog, which is not parsed here. */
  readonly format: 'json' | 'xml' | 'page';
  /** Whether the access token is sent too (interface, section 5), or only if it is known. The API key always is. */
  readonly token: boolean | 'if-known';
  /** Idempotent: retried after any passing failure. */
  readonly repeatable: boolean;
  /** Field of the answer that identifies what was created. */
  readonly creates?: string;
  /** Fields of a successful answer. An answer with one of them is not an error because it also has a `code`. */
  readonly fields?: readonly string[];
  /** Statuses other than 2xx whose body is read as an answer. */
  readonly accepts?: readonly number[];
  /** What a 403 means and what to do: one sentence. */
  readonly whoMayCall?: string;
}

/** A request whose path and body are texts, ready to be sent. */
export interface Prepared extends Request {
  readonly body: string | undefined;
  readonly secrets: readonly string[];
}

/** An answer whose status is 2xx or accepted by the operation. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** Of a page that is too long for an error: empty. */
  readonly text: string;
  /** Of a page: the body, which may not be UTF-8. Otherwise empty. */
  readonly body: Uint8Array<ArrayBuffer>;
  /** Scheme, host and port of the service. */
  readonly origin: string;
  /** Removes secrets from what the service says. */
  readonly hide: Hide;
  /** The error that an accepted status stands for. */
  readonly refusal?: CatchwordError;
  /** Local clock, milliseconds since 1970. */
  readonly requestedAt: number;
  readonly receivedAt: number;
}

function faultOf(value: string): string | undefined {
  if (value.trim() === '') return 'is empty';
  if (/\p{Cc}|\p{Cs}/u.test(value)) return 'has a character that is not allowed in an identifier';
  return /^\.\.?$/.test(value) ? 'would lead to another address' : undefined;
}

/** Encodes an identifier as one segment of a path. @throws CatchwordError USAGE if it cannot be one */
export function pathPart(what: string, value: unknown): string {
  if (typeof value !== 'string') {
    throw new CatchwordError('USAGE', `the ${what} is not a text`, {
      hint: 'Put it in quotes, even if it is a number.',
    });
  }
  const fault = faultOf(value);
  if (fault === undefined) return encodeURIComponent(value);
  throw new CatchwordError('USAGE', `the ${what} ${fault}`, { hint: `Pass the ${what} as the service returned it.` });
}

function bodyText({ body, subject = 'the request' }: Request): string | undefined {
  if (body === undefined || typeof body === 'string') return body;
  try {
    return JSON.stringify(body);
  } catch (error) {
    const [reason] = messageOf(error).split('\n');
    throw new CatchwordError('USAGE', `${subject}: its fields cannot be written as JSON (${reason})`, {
      hint: 'Pass only texts, numbers, booleans, null, arrays and objects, without circular references.',
    });
  }
}

/** @throws CatchwordError USAGE if an identifier is missing or invalid, or the body cannot be written as JSON */
export function prepare<Asked extends Request>(request: Asked): Asked & Prepared {
  const { values = {}, body, secrets = [] } = request;
  const path = request.path.replace(/(\/?):(\w+)/g, (written, slash: string, name: string) => {
    // A colon inside a segment, as in `/products:lookup`, may be part of a configured path.
    if (!(name in values) && slash === '') return written;
    return `${slash}${pathPart(name.replaceAll('_', ' '), values[name])}`;
  });
  return { ...request, path, body: bodyText(request), secrets: [...secrets, ...secretsInAddresses(body)] };
}
