import { CatchwordError } from '../errors.ts';
import { type Headers, header } from './body.ts';
import { parseRetryAfter } from './retry.ts';

const MAX_TEXT = 200;
/** Explanations are short; anything longer is not let near a parser. */
const MAX_PARSED = 65_536;

/** What the service says went wrong: `{"errors": ["…"]}`, a bare JSON string, or whatever else it sent. */
function explanation(body: string): string {
  let said: unknown = body;
  if (body.length > MAX_PARSED) return '';
  try {
    const parsed: unknown = JSON.parse(body);
    said = typeof parsed === 'object' && parsed !== null && 'errors' in parsed ? parsed.errors : parsed;
  } catch {
    // Broken JSON and plain text are shown as they are.
    if (/<html|<!doctype/i.test(body)) return '';
  }
  const text = Array.isArray(said) ? said.map(String).join('; ') : typeof said === 'string' ? said : '';
  return text
    .replace(/\p{Cc}+/gu, ' ')
    .trim()
    .slice(0, MAX_TEXT);
}

function retryAfter(headers: Headers, nowMs: number): number | undefined {
  const date = Date.parse(header(headers, 'date') ?? '');
  return parseRetryAfter(header(headers, 'retry-after'), Number.isNaN(date) ? nowMs : date);
}

/**
 * The error that an answer other than 2xx stands for (interface, section 7).
 * @param body its text, as far as it could be read
 * @param origin scheme, host and port that was asked
 */
export function refusal(status: number, headers: Headers, body: string, origin: string, nowMs: number): CatchwordError {
  const said = explanation(body);
  const text = `${origin} answered ${status}${said === '' ? '' : `: ${said}`}`;
  if (/catalog not found/i.test(said)) {
    return new CatchwordError('SOURCE_AUTH', text, {
      hint: 'This API key has no catalog. Ask the service for access, or use another CATCHWORD_API_KEY.',
    });
  }
  if (status === 401 || status === 403) {
    return new CatchwordError('SOURCE_AUTH', text, {
      hint: 'Check CATCHWORD_API_KEY and CATCHWORD_ACCESS_TOKEN.',
    });
  }
  const retryAfterMs = retryAfter(headers, nowMs);
  const pause = retryAfterMs === undefined ? {} : { retryAfterMs };
  if (status === 429) {
    return new CatchwordError('SOURCE_RATE_LIMITED', text, {
      hint: 'Lower CATCHWORD_RATE_LIMIT; another program may use the same key.',
      ...pause,
    });
  }
  if (status >= 500 || status === 408) {
    return new CatchwordError('SOURCE_UNAVAILABLE', text, {
      hint: 'The service has trouble; try again later.',
      ...pause,
    });
  }
  if (status >= 300 && status < 400) {
    const location = header(headers, 'location') ?? '';
    const to = URL.canParse(location, origin) ? ` to ${new URL(location, origin).origin}` : '';
    return new CatchwordError('SOURCE_NOT_SERVICE', `${origin} redirects${to}, and redirects are not followed`, {
      hint: 'Set CATCHWORD_BASE_URL to the address of the service itself.',
      retryable: false,
    });
  }
  if (status === 404 || status === 405 || status === 410) {
    return new CatchwordError('SOURCE_NOT_SERVICE', text, {
      hint: 'Check CATCHWORD_BASE_URL: there is no catalog at this address.',
      retryable: false,
    });
  }
  return new CatchwordError('SOURCE_REFUSED', text, {
    hint: 'The request was not to its liking; see npx catchword doctor.',
  });
}
