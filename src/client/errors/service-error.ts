import { parseRetryAfter, type RetryAfter } from '../../backoff.ts';
import { CatchwordError, type ErrorCode, type ErrorDetails } from '../../errors.ts';
import { type Headers, header } from '../http/response-body.ts';
import type { Hide } from '../redact.ts';
import { isPage, saidInRefusal } from './error-body.ts';
import type { Said } from './error-messages.ts';

/** An answer that is a refusal. */
export interface Refused {
  readonly status: number;
  readonly headers: Headers;
  /** Its text, as far as it could be read. */
  readonly body: string;
  readonly hide: Hide;
  /** Scheme, host and port that was asked. */
  readonly origin: string;
  /** Milliseconds since 1970. */
  readonly nowMs: number;
  /** `catalog`: the hot path, where any 4xx means that the address or the settings are wrong. */
  readonly kind: 'catalog' | 'read' | 'write';
  /** Whether the path ends in an identifier. */
  readonly identified: boolean;
}

interface Verdict {
  readonly code: ErrorCode;
  readonly hint: string;
  readonly retryable?: boolean;
}

/** The service's own codes, and HTTP's where they come in a body whose status is another. */
const BY_CODE: Readonly<Record<number, Verdict>> = {
  400: { code: 'SERVICE_INVALID', hint: 'Correct what was sent; the message says what is wrong.' },
  401: { code: 'SOURCE_AUTH', hint: 'Check CATCHWORD_API_KEY and CATCHWORD_ACCESS_TOKEN.' },
  403: {
    code: 'SERVICE_FORBIDDEN',
    hint: 'Check CATCHWORD_API_KEY: it is not valid, or does not own what it asks for.',
  },
  404: { code: 'NOT_FOUND', hint: 'Check the identifier; the service does not know it.' },
  413: { code: 'SOURCE_REFUSED', hint: 'The body is larger than the service takes: send less at once.' },
  422: { code: 'SERVICE_INVALID', hint: 'Correct what was sent; the message says what is wrong.' },
  429: { code: 'SOURCE_RATE_LIMITED', hint: 'Lower CATCHWORD_RATE_LIMIT; another program may use the same key.' },
  474: { code: 'SERVICE_UNKNOWN_USER', hint: 'Check the reference, or create the user: catchword user create.' },
  601: {
    code: 'SERVICE_TOKEN',
    hint: 'Set CATCHWORD_USER_REFERENCE to the user’s reference, so that a new access token can be fetched.',
  },
  603: {
    code: 'SERVICE_UNKNOWN_USER',
    hint: 'Create the user with this API key: catchword user create. A reference is tied to the key that created it.',
  },
  650: { code: 'SERVICE_INVALID', hint: 'Correct what was sent; the message says what is wrong.' },
};

function verdictOf(code: number): Verdict {
  const known = BY_CODE[code];
  if (known !== undefined) return known;
  if (code >= 500 && code < 600) {
    return { code: 'SOURCE_UNAVAILABLE', hint: 'The service has trouble; try again later.' };
  }
  return { code: 'SERVICE_ERROR', hint: `Look up code ${code} in the service’s documentation.` };
}

/**
 * The error that a custom code stands for, whatever the status of the answer was.
 * @param origin scheme, host and port that was asked
 */
export function serviceError(said: Said, status: number, origin: string): CatchwordError {
  const verdict: Verdict =
    said.code === undefined
      ? { code: 'SERVICE_ERROR', hint: 'The service gave no code; its text is all that is known.' }
      : verdictOf(said.code);
  const code = said.code === undefined ? '' : ` (code ${said.code})`;
  const text = said.text === '' ? 'with an error' : `“${said.text}”`;
  return new CatchwordError(verdict.code, `${origin} answered ${text}${code}`, {
    hint: verdict.hint,
    status,
    serviceCode: said.code,
  });
}

function retryAfter(headers: Headers, nowMs: number): RetryAfter | undefined {
  const date = Date.parse(header(headers, 'date') ?? '');
  return parseRetryAfter(header(headers, 'retry-after'), Number.isNaN(date) ? nowMs : date);
}

function redirectText({ headers, origin }: Refused): string {
  const location = header(headers, 'location') ?? '';
  const to = URL.canParse(location, origin) ? ` to ${new URL(location, origin).origin}` : '';
  return `${origin} redirects${to}, and redirects are not followed`;
}

/**
 * Of 404, 405 and 410: the catalog is there or it is not, but of other things one may be missing. The service says so in
 * words, or in none where the path names one thing; a page for people is not the service's. Where the path names none, it
 * may be the path that is missing.
 */
function missing({ status, kind, identified, body }: Refused, said: Said): Verdict {
  const isMissing = said.text !== '' || (identified && !isPage(body));
  if (kind !== 'catalog' && status !== 405 && isMissing) {
    if (identified) return verdictOf(404);
    return { code: 'NOT_FOUND', hint: 'Check CATCHWORD_BASE_URL: there may be no such operation at this address.' };
  }
  return {
    code: 'SOURCE_NOT_SERVICE',
    hint: `Check CATCHWORD_BASE_URL: there is no ${kind === 'catalog' ? 'catalog' : 'such operation'} at this address.`,
    retryable: false,
  };
}

function byStatus(refused: Refused, said: Said): Verdict {
  const { status, kind } = refused;
  if (/catalog not found/i.test(said.text)) {
    return {
      code: 'SOURCE_AUTH',
      hint: 'This API key has no catalog. Ask the service for access, or use another CATCHWORD_API_KEY.',
    };
  }
  if (status === 403 && kind === 'write') return verdictOf(403);
  if (status === 401 || status === 403) return verdictOf(401);
  if (status === 413 || status === 429) return verdictOf(status);
  if (status >= 500 || status === 408) return verdictOf(500);
  if (status === 404 || status === 405 || status === 410) return missing(refused, said);
  if (kind === 'catalog') {
    return { code: 'SOURCE_REFUSED', hint: 'The request was not to its liking; see npx catchword doctor.' };
  }
  if (status === 400 || status === 422) return verdictOf(422);
  return { code: 'SOURCE_REFUSED', hint: `Look up status ${status} in the service’s documentation.` };
}

/** The error that an answer other than 2xx stands for (interface, section 7). */
export function refusal(refused: Refused): CatchwordError {
  const { status, headers, origin, nowMs } = refused;
  const details: ErrorDetails = { status };
  if (status >= 300 && status < 400) {
    return new CatchwordError('SOURCE_NOT_SERVICE', redirectText(refused), {
      ...details,
      hint: 'Set CATCHWORD_BASE_URL to the address of the service itself.',
      retryable: false,
    });
  }
  const said = saidInRefusal(refused.body, refused.hide);
  const own = said.code ?? (status >= 600 ? status : undefined);
  const custom = own !== undefined && own !== status ? own : status >= 600 ? status : undefined;
  const { code, ...verdict } = custom === undefined ? byStatus(refused, said) : verdictOf(custom);
  const pause = status === 429 || status >= 500 || status === 408 ? retryAfter(headers, nowMs) : undefined;
  const text = said.text === '' ? '' : `: ${said.text}`;
  const codeText = custom === undefined || custom === status ? '' : ` (code ${custom})`;
  const pauseText = pause === undefined || pause.note === '' ? '' : `; ${pause.note}`;
  return new CatchwordError(code, `${origin} answered ${status}${text}${codeText}${pauseText}`, {
    ...details,
    ...verdict,
    ...(custom !== undefined && { serviceCode: custom }),
    ...(pause !== undefined && { retryAfterMs: pause.ms }),
  });
}
