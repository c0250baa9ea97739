import { cutPage } from '../../catalog/json-text.ts';
import { CatchwordError, messageOf } from '../../errors.ts';
import type { Call, Caller } from './requester.ts';
import type { JsonAnswer } from './response.ts';

/** Answers are nested a few levels deep; this is room for what nobody has thought of. */
const MAX_DEPTH = 64;

/** What every call may be given. */
export interface CallOptions {
  /** Gives the call up; it then fails with INTERRUPTED. */
  readonly signal?: AbortSignal | undefined;
}

export interface V4Call
  extends Pick<Call, 'method' | 'path' | 'repeatable' | 'freeform' | 'fields' | 'identified' | 'creates'> {
  /** Written as JSON. */
  readonly body?: unknown;
  readonly signal: AbortSignal | undefined;
  /** What it is about, such as `asset 9781402894626`; for what is to be created, `new asset`. */
  readonly subject: string;
  /** What a 403 means, and what to do: one sentence. */
  readonly whoMayCall: string;
}

/** Characters. What is shorter is a word that may stand anywhere. */
const MIN_SECRET = 6;
/** What a service may say of a field or a file, such as `original`. */
const WORD = /^[A-Za-z]?[a-z]{0,15}$/;
const SECRET_NAME = /key|pass|secret|sig|token|auth|credential/i;

/** Names and values, as they were written and what they stand for, and all of them together. */
function parametersOf({ search, searchParams }: URL): [string, string][] {
  const written = search.slice(1);
  const pairs = written.split('&').map((pair): [string, string] => {
    const [name = ''] = pair.split('=', 1);
    return [name, pair.slice(name.length + 1)];
  });
  return [...searchParams, ...pairs, ['', written]];
}

/** Addresses of files and callbacks may hold a password or a signature, so no error repeats them, in any spelling. */
function addressesIn(body: unknown): string[] {
  if (typeof body !== 'object' || body === null) return [];
  const secrets = Object.entries(body).flatMap(([field, value]: [string, unknown]) => {
    if (!/url$/i.test(field) || typeof value !== 'string') return [];
    if (!URL.canParse(value)) return WORD.test(value) ? [] : [value];
    const url = new URL(value);
    const { href, username, password } = url;
    const parameters = parametersOf(url).filter(([name, one]) => SECRET_NAME.test(name) || !WORD.test(one));
    const login = [`${username}:${password}`, password, decoded(password)];
    return [value, href, ...login, ...parameters.map(([, one]) => one)];
  });
  return secrets.filter((secret) => secret.length >= MIN_SECRET);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function explained(error: unknown, { subject, whoMayCall, identified }: V4Call): unknown {
  if (!(error instanceof CatchwordError)) return error;
  const { status, serviceCode, hint = '' } = error;
  const details = { status, serviceCode };
  if (error.code === 'SERVICE_FORBIDDEN' || (error.code === 'SOURCE_AUTH' && status === 403)) {
    return new CatchwordError('SERVICE_FORBIDDEN', `${subject}: ${error.message}`, {
      ...details,
      hint: `Check CATCHWORD_API_KEY. ${whoMayCall}`,
    });
  }
  if (error.code === 'NOT_FOUND' && identified === true) {
    return new CatchwordError('NOT_FOUND', `${subject} is not known: ${error.message}`, {
      ...details,
      hint: 'Check the identifier, and whether this API key may see it.',
    });
  }
  if (error.code !== 'SERVICE_INVALID' && error.code !== 'NOT_FOUND') return error;
  return new CatchwordError(error.code, `${subject}: ${error.message}`, { ...details, hint });
}

function bodyOf({ body, subject }: V4Call): string | undefined {
  if (body === undefined) return undefined;
  try {
    return JSON.stringify(body);
  } catch (error) {
    const [why] = messageOf(error).split('\n');
    throw new CatchwordError('USAGE', `${subject}: its fields cannot be written as JSON (${why})`, {
      hint: 'Nothing was sent. Give texts, numbers, booleans, null, arrays and objects, none of which holds itself.',
    });
  }
}

/**
 * One v4 operation in JSON, with the API key and without an access token (interface, section 5).
 * @throws CatchwordError USAGE where the body cannot be written; SOURCE_*, SERVICE_*, NOT_FOUND, INTERRUPTED
 */
export async function callV4(caller: Caller, call: V4Call): Promise<JsonAnswer> {
  const {
    method,
    path,
    repeatable,
    freeform,
    fields,
    identified,
    creates,
    signal = new AbortController().signal,
  } = call;
  const body = bodyOf(call);
  let answer: JsonAnswer;
  try {
    const secrets = addressesIn(call.body);
    const how = { repeatable, freeform, fields, identified, creates, secrets, signal };
    answer = await caller.json({ method, path, body, token: false, ...how });
  } catch (error) {
    throw explained(error, call);
  }
  // Depth is a matter of objects and arrays.
  if (typeof answer.value !== 'object' || cutPage(answer.text, MAX_DEPTH) !== null) return answer;
  throw new CatchwordError('SOURCE_BODY', `${caller.origin} answered with JSON nested deeper than ${MAX_DEPTH}`, {
    hint: 'Ask the service; an answer of this operation is a few levels deep.',
    retryable: false,
  });
}
