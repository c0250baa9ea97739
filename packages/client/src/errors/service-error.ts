import { askedPause } from '@catchword/base/backoff';
import { CatchwordError, type ErrorCode, type ErrorDetails } from '@catchword/base/errors';
import { dateOf, header } from '../headers.ts';
import type { Answer, Request } from '../http/exchange.ts';
import { isPage, messageIn, type ServiceMessage } from './error-message.ts';

type Verdict = Pick<CatchwordError, 'code'> & Pick<ErrorDetails, 'hint' | 'setting' | 'retryable'>;

const API_KEY = 'CATCHWORD_API_KEY';
const BASE_URL = 'CATCHWORD_BASE_URL';

/**
 * Whether a status says that the service, or what is in front of it, is in trouble, and not that it refuses the request, as
 * 501 does. A good status may come with an error.
 */
export function isPassing(status: number): boolean {
  return (status >= 500 && status !== 501) || status === 408 || status === 425 || status < 300;
}

const INVALID: Verdict = { code: 'SERVICE_INVALID', hint: 'Correct the request as the message says.' };

/** Codes of the service, and codes of HTTP that come in a body with another status: error, hint and setting. */
const BY_CODE: Readonly<Record<number, readonly [ErrorCode, string, string?]>> = {
  401: ['SOURCE_AUTH', 'Check {setting} and the access token.', API_KEY],
  403: ['SERVICE_FORBIDDEN', 'Check {setting}: the key is invalid, or lacks the permission.', API_KEY],
  404: ['NOT_FOUND', 'Check the identifier, and whether this API key may see it.'],
  413: [
    'SOURCE_REFUSED',
    'Ask for less or send less in one request: it is larger than the service, or a proxy, accepts.',
  ],
  429: [
    'SOURCE_RATE_LIMITED',
    'Lower {setting}; if few requests may run at once, lower the concurrency. Another program may use the same key.',
    'CATCHWORD_RATE_LIMIT',
  ],
  431: [
    'SOURCE_REFUSED',
    'Check {setting} and the API key: the headers are longer than the service, or a proxy, accepts.',
    'CATCHWORD_ACCESS_TOKEN',
  ],
  474: ['SERVICE_UNKNOWN_USER', 'Check the reference, or create the user.'],
  601: [
    'SERVICE_TOKEN',
    'Set {setting} to the reference of the user, so that the access token can be renewed.',
    'CATCHWORD_USER_REFERENCE',
  ],
  904: ['SERVICE_INVALID', 'Use another reference or email, or read the user that has it.'],
  603: ['SERVICE_UNKNOWN_USER', 'Create the user with this API key: a reference belongs to the key that created it.'],
};

const NO_DELTAS =
  'The service may have no deltas, or want another form of time: ask it. Without deltas, set CATCHWORD_DELTA_CRON=off.';

const PASSING =
  'Retry later: the service, or a proxy before it, is in trouble, or cannot keep up with so many requests.';

function verdictOf(code: number | undefined): Verdict {
  if (code === undefined) return { code: 'SERVICE_ERROR', hint: 'The service gave no code: see its text.' };
  if (code === 400 || code === 422 || code === 650) return INVALID;
  const known = BY_CODE[code];
  if (known !== undefined) return { code: known[0], hint: known[1], setting: known[2] };
  if (code >= 500 && code < 600) return { code: 'SOURCE_UNAVAILABLE', hint: PASSING };
  return { code: 'SERVICE_ERROR', hint: `Look up code ${code} in the documentation of the service.` };
}

/** The error that an answer reports in its body, at any status. */
export function serviceError(said: ServiceMessage, status: number, origin: string): CatchwordError {
  const { code, ...details } = verdictOf(said.code);
  const codeText = said.code === undefined ? '' : ` (code ${said.code})`;
  const message = `${origin} answered ${said.text === '' ? 'with an error' : `“${said.text}”`}${codeText}`;
  return new CatchwordError(code, message, { ...details, status, serviceCode: said.code });
}

function redirected({ headers, origin, status, hide }: Answer): CatchwordError {
  const location = header(headers, 'location') ?? '';
  const target = location !== '' && URL.canParse(location, origin) ? new URL(location, origin) : null;
  // Without the query, which may hold a session.
  const to = target === null ? ` without an address (${status})` : ` to ${hide(`${target.origin}${target.pathname}`)}`;
  return new CatchwordError('SOURCE_NOT_SERVICE', `${origin} redirects${to}; redirects are not followed`, {
    status,
    hint: 'Set {setting} to the address of the service itself, its path included. If this leads to a sign-in, check the API key.',
    setting: BASE_URL,
    retryable: false,
  });
}

function byStatus(request: Request, { status, text: body }: Answer, text: string): Verdict {
  const isCatalog = request.format === 'page';
  const isDelta = isCatalog && request.query?.has('from') === true;
  if (/catalog not found/i.test(text)) {
    const hint = 'This API key has no catalog. Ask the service for access, or set {setting} to another key.';
    return { code: 'SOURCE_AUTH', hint, setting: API_KEY };
  }
  // A read that every key may do is refused for the key itself.
  if (status === 403 && request.method === 'GET' && request.whoMayCall === undefined) {
    const hint = 'Check {setting} and the access token; or a firewall refuses the address of this machine.';
    return { ...verdictOf(401), hint };
  }
  if ([401, 403, 413, 429, 431].includes(status)) return verdictOf(status);
  if (isPassing(status)) return verdictOf(500);
  if (status === 304) {
    return {
      code: 'SOURCE_NOT_SERVICE',
      hint: 'Check the service and the caches in between: the request had no condition.',
    };
  }
  // An operation that creates may have an identifier in its path, too: then nothing is missing there.
  const isOfOne = request.values !== undefined && request.creates === undefined && !isCatalog;
  if (isOfOne && (status === 404 || status === 410) && !isPage(body)) return verdictOf(404);
  if (status === 404 || status === 405 || status === 410) {
    const what = isCatalog ? 'its catalog' : 'this operation';
    const lacks = `the service does not have ${what} at this address, or hides it from this API key`;
    const hint = isDelta ? `${NO_DELTAS} If it refuses the list, too, check {setting}.` : `Check {setting}: ${lacks}.`;
    return { code: 'SOURCE_NOT_SERVICE', hint, setting: BASE_URL, retryable: false };
  }
  if (isCatalog) {
    if (isDelta) return { code: 'SOURCE_REFUSED', hint: NO_DELTAS };
    const isPage = request.query?.has('per_page') === true;
    const what = isPage ? 'CATCHWORD_PER_PAGE, and the names and values of the other parameters' : 'what was asked for';
    return { code: 'SOURCE_REFUSED', hint: `Check ${what}; or run npx catchword doctor.` };
  }
  if (status === 400 || status === 422) return INVALID;
  return { code: 'SOURCE_REFUSED', hint: `Look up status ${status} in the documentation of the service.` };
}

/** The error that an answer with another status than 2xx stands for (interface, section 7). @rule 7-2..4, 7-6 */
export function refusalError(request: Request, answer: Answer): CatchwordError {
  const { status, headers, origin } = answer;
  const pause = askedPause(headers, status, dateOf(headers) ?? answer.receivedAt);
  if (status >= 300 && status < 400 && status !== 304) return redirected(answer).with({ retryAfterMs: pause?.ms });
  const message = messageIn(answer.text, answer.hide);
  // The status that carries 601 is not shown; it may be 601 itself.
  const found = message.code ?? (status >= 600 ? status : undefined);
  const serviceCode = found === status && status < 600 ? undefined : found;
  const { code, ...details } =
    serviceCode === undefined ? byStatus(request, answer, message.text) : verdictOf(serviceCode);
  const shown = isPage(answer.text) ? ' with an HTML page' : '';
  const text = message.text === '' ? shown : `: ${message.text}`;
  const codeText = serviceCode === undefined || serviceCode === status ? '' : ` (code ${serviceCode})`;
  const pauseText = pause === undefined || pause.note === '' ? '' : `; ${pause.note}`;
  return new CatchwordError(code, `${origin} answered ${status}${text}${codeText}${pauseText}`, {
    ...details,
    status,
    serviceCode,
    retryAfterMs: pause?.ms,
  });
}

/** Says what an error of the service is about, and after a 403 who may call the operation. */
export function aboutSubject(error: CatchwordError, { subject, whoMayCall }: Request): CatchwordError {
  const isAbout = ['SERVICE_FORBIDDEN', 'SERVICE_INVALID', 'NOT_FOUND'].includes(error.code);
  if (subject === undefined || !isAbout) return error;
  const isMissing = error.code === 'NOT_FOUND' ? ' is not known' : '';
  const about = error.with({ message: `${subject}${isMissing}: ${error.message}` });
  if (error.code !== 'SERVICE_FORBIDDEN' || whoMayCall === undefined) return about;
  return about.with({ hint: `Check {setting}. ${whoMayCall}`, setting: API_KEY });
}
