import { CatchwordError, messageOf } from '../../errors.ts';
import { secretsInAddresses } from './address-secrets.ts';
import type { ParsedAnswer } from './answer.ts';
import type { Endpoint } from './endpoint.ts';

/**
 * An operation of the service, declared once. Every layer passes it on together with its input.
 * @rule 4.1-6, 4.1-11, 5-5
 */
export interface Operation<Input, Result> extends Endpoint {
  /** @throws CatchwordError USAGE if the input is invalid */
  request(input: Input): RequestParts;
  /** @throws CatchwordError SERVICE_* if the answer is an error or does not fit */
  read(answer: ParsedAnswer, input: Input): Result;
}

export interface RequestParts {
  /** Values of the `:name` segments of the path. */
  readonly values?: Readonly<Record<string, unknown>>;
  readonly query?: URLSearchParams;
  /** A string is sent as it is, anything else as JSON. */
  readonly body?: unknown;
  /** Parts of the body that no error may repeat, such as a password. */
  readonly secrets?: readonly string[];
  /** What the request is about, such as `asset 9781402894626`; errors start with it. */
  readonly subject?: string;
}

/** A request that is ready to be sent. */
export interface Request {
  readonly path: string;
  readonly query: URLSearchParams | undefined;
  readonly body: string | undefined;
  readonly secrets: readonly string[];
  readonly subject: string | undefined;
}

function faultOf(value: string): string | undefined {
  if (value.trim() === '') return 'is empty';
  if (value.length > 255) return 'is longer than 255 characters';
  if (/\p{Cc}|\p{Cs}/u.test(value)) return 'has a character that is not allowed in an identifier';
  return /^\.\.?$/.test(value) ? 'would lead to another address' : undefined;
}

/**
 * Encodes an identifier as one segment of a path.
 * @param what what it identifies, such as `vbid`
 * @throws CatchwordError USAGE if it is not a text, is empty or too long, or would lead to another path
 */
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

function bodyText(body: unknown, subject = 'the request'): string | undefined {
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

/** Makes the request of an operation. @throws CatchwordError USAGE */
export function prepare<Input>(operation: Operation<Input, unknown>, input: Input): Request {
  const { values = {}, query, body, secrets = [], subject } = operation.request(input);
  const path = operation.path.replace(/:(\w+)/g, (segment, name: string) =>
    name in values ? pathPart(name.replaceAll('_', ' '), values[name]) : segment,
  );
  const text = bodyText(body, subject);
  return { path, query, body: text, secrets: [...secrets, ...secretsInAddresses(body)], subject };
}
