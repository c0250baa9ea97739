import { Readable } from 'node:stream';
import { Agent, request } from 'undici';
import { withAbort } from '../../abort.ts';
import type { Clock } from '../../clock.ts';
import { CatchwordError, messageOf, systemCodeOf, toErrorRecord } from '../../errors.ts';
import { isLoopback } from '../../loopback.ts';
import { VERSION } from '../../version.ts';
import { saidInAnswer } from '../errors/error-body.ts';
import { type Refused, refusal, serviceError } from '../errors/service-error.ts';
import { type Hide, hiding } from '../redact.ts';
import { givenUp } from './abort-errors.ts';
import {
  ANY_ANSWER,
  answerText,
  BODY_LIMITS,
  type BodyLimits,
  type ContentTypes,
  decodedText,
  type Headers,
  JSON_ANSWER,
  PAGE_ANSWER,
  readBytes,
} from './response-body.ts';

export interface TransportOptions {
  /** `{base_url}`; may have a path. */
  readonly baseUrl: string;
  readonly apiKey: string;
  /** A function is asked again before each request: a token may be replaced meanwhile. */
  readonly accessToken: string | undefined | (() => string | undefined);
  readonly apiKeyHeader: string;
  readonly accessTokenHeader: string;
  /** Connect, headers and body together, in milliseconds. */
  readonly timeoutMs: number;
  /** Connections kept open, at most. */
  readonly connections: number;
  readonly clock: Clock;
  readonly limits?: BodyLimits;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The error that a status other than 2xx stands for, where it was accepted as an answer. */
  readonly refusal?: CatchwordError;
  /** Over the wire. */
  readonly bytes: number;
  /** Local clock, milliseconds since 1970. */
  readonly requestedAt: number;
  readonly receivedAt: number;
}

/** Any request but the catalog's. */
export interface TransportRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Below the base address, its parts already encoded. */
  readonly path: string;
  readonly query?: URLSearchParams | undefined;
  readonly body?: string | undefined;
  readonly contentType?: string | undefined;
  /** Default: JSON. */
  readonly accept?: string | undefined;
  /** Whether the access token is sent (interface, section 5). The API key always is. */
  readonly token: boolean;
  readonly signal: AbortSignal;
  readonly limits?: BodyLimits | undefined;
  /** Statuses besides 2xx that are an answer and no error. */
  readonly accepted?: readonly number[] | undefined;
  /** Parts of the body that no error may repeat, such as a password. */
  readonly secrets?: readonly string[] | undefined;
  /** Whether the path ends in an identifier, so that a 404 without a word says that there is no such thing. */
  readonly identified?: boolean | undefined;
  /** Fields of what is asked for; an answer that has one is no error for having a code and a text as well. */
  readonly fields?: readonly string[] | undefined;
  /**
   * Whether it may have been done once it was answered with a good status, even where nobody understands the answer: such
   * an error is final then.
   */
  readonly onceAnswered?: boolean | undefined;
  /** Whether bytes that are not UTF-8 are kept in the answer's text (see `textOfBytes`); default: SOURCE_BODY. */
  readonly keepsBytes?: boolean | undefined;
  /** Told when the request begins to be sent: until then, nothing can have been done. */
  readonly onSent?: (() => void) | undefined;
}

export interface Transport {
  /** Scheme, host and port of the service. */
  readonly origin: string;
  /** Shows texts of the service's without the key, the tokens and what else is secret. */
  readonly hiding: (more?: readonly string[]) => Hide;
  /**
   * Exactly one request; nothing is tried again, no redirect is followed. What a body with a good status says is left to
   * the caller.
   * @throws CatchwordError SOURCE_*, SERVICE_*, NOT_FOUND; INTERRUPTED when `signal` aborts
   */
  send(request: TransportRequest): Promise<Answer>;
  /**
   * Exactly one GET request; nothing is tried again, no redirect is followed.
   * @param accepted statuses besides 2xx that are an answer and no error
   * @param keepsBytes whether bytes that are not UTF-8 are kept in the text (see `textOfBytes`); default: SOURCE_BODY
   * @throws CatchwordError SOURCE_*; INTERRUPTED when `signal` aborts
   */
  get(
    path: string,
    query: URLSearchParams,
    signal: AbortSignal,
    accepted?: readonly number[],
    keepsBytes?: boolean,
  ): Promise<Answer>;
  close(): Promise<void>;
}

/** Characters. For safety: an explanation is shorter, and anything longer is not looked through. */
const MAX_EXPLANATION = 2 ** 20;

const JSON_TYPE = 'application/json';

/** Fields of a page of the catalog, and of a product. */
export const CATALOG_FIELDS: readonly string[] = ['items', 'vbid'];

/** Certificates do not get better by asking again. */
const CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ERR_TLS/;

/** Asked for only once there is a connection to send it by, though it be empty. */
function reported(body: string, onSent: () => void): Readable {
  const pieces = (function* () {
    onSent();
    yield Buffer.from(body);
  })();
  return Readable.from(pieces, { objectMode: false });
}

/** The innermost code: undici wraps what the socket said. */
function codeOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return systemCodeOf(cause) ?? messageOf(error).slice(0, 80);
}

export function createTransport(options: TransportOptions): Transport {
  const { baseUrl, apiKey, timeoutMs, clock, limits = BODY_LIMITS } = options;
  const base = new URL(baseUrl);
  const secrets = new Set([apiKey]);
  const agent = new Agent({
    connections: options.connections,
    pipelining: 1,
    keepAliveTimeout: 30_000,
    connect: { timeout: timeoutMs },
    // The deadline covers both; undici's own would only report it under another name.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  const common = {
    'user-agent': `catchword/${VERSION}`,
    // On loopback, compression costs both sides time and saves nothing.
    ...(!isLoopback(base.hostname) && { 'accept-encoding': 'gzip' }),
    [options.apiKeyHeader]: apiKey,
  };

  function tokenHeader(): Record<string, string> {
    const { accessToken, accessTokenHeader } = options;
    const token = typeof accessToken === 'function' ? accessToken() : accessToken;
    if (token === undefined) return {};
    secrets.add(token);
    return { [accessTokenHeader]: token };
  }

  /** A service may repeat what it was sent. */
  function hidingAll(more: readonly string[] = []): Hide {
    return hiding(() => [...secrets, ...more]);
  }

  function timeoutError(kind: Refused['kind']): CatchwordError {
    const orPages = kind === 'catalog' ? ', or read smaller pages with CATCHWORD_PER_PAGE' : '';
    return new CatchwordError('SOURCE_TIMEOUT', `${base.origin} did not answer within ${timeoutMs / 1000} s`, {
      hint: `Raise CATCHWORD_REQUEST_TIMEOUT${orPages}.`,
    });
  }

  /** What the network did. The error itself is left behind: it may hold the request with its headers. */
  function connectionError(error: unknown): CatchwordError {
    const code = codeOf(error);
    const isDistrusted = CERTIFICATE.test(code);
    return new CatchwordError('SOURCE_UNAVAILABLE', `${base.origin} cannot be reached or broke off (${code})`, {
      hint: isDistrusted
        ? 'Its certificate is not accepted: check CATCHWORD_BASE_URL; NODE_EXTRA_CA_CERTS names a file of authorities to trust.'
        : 'Check CATCHWORD_BASE_URL and the network; the service may be down.',
      retryable: !isDistrusted,
    });
  }

  interface Exchange {
    readonly method: TransportRequest['method'];
    readonly headers: Record<string, string>;
    readonly body?: string | undefined;
    readonly accepted: readonly number[];
    readonly limits: BodyLimits;
    readonly types: ContentTypes;
    readonly kind: Refused['kind'];
    readonly secrets?: readonly string[] | undefined;
    readonly identified: boolean;
    readonly fields: readonly string[];
    readonly onceAnswered: boolean;
    readonly onSent?: (() => void) | undefined;
  }

  async function refused(
    exchange: Exchange,
    status: number,
    headers: Headers,
    bytes: Uint8Array,
  ): Promise<CatchwordError> {
    let text = '';
    try {
      text = await decodedText(bytes, headers, exchange.limits);
    } catch {
      // The status says enough.
    }
    const body = text.length > MAX_EXPLANATION ? '' : text;
    const { kind, identified } = exchange;
    const about = { status, headers, body, origin: base.origin, nowMs: clock.now(), kind, identified };
    return refusal({ ...about, hide: hidingAll(exchange.secrets) });
  }

  /** The text of an answer with a good status; where it is of another type than asked for, it may tell of an error. */
  async function goodText(exchange: Exchange, status: number, headers: Headers, bytes: Uint8Array): Promise<string> {
    try {
      return await answerText(bytes, headers, exchange.limits, exchange.types);
    } catch (error) {
      if (!(error instanceof CatchwordError) || error.code !== 'SOURCE_NOT_SERVICE') throw error;
      const text = await decodedText(bytes, headers, exchange.limits);
      const notUnderstood = exchange.onceAnswered
        ? new CatchwordError(error.code, error.message, { ...toErrorRecord(error), status, retryable: false })
        : error;
      if (text.length > MAX_EXPLANATION) throw notUnderstood;
      const said = saidInAnswer(text, exchange.fields, hidingAll(exchange.secrets));
      // Of the catalog, a text alone may be a proxy's, which is gone when it is asked again.
      const isError = said !== undefined && (said.code !== undefined || exchange.kind !== 'catalog');
      throw isError ? serviceError(said, status, base.origin) : notUnderstood;
    }
  }

  async function send(url: URL, signal: AbortSignal, exchange: Exchange): Promise<Answer> {
    const requestedAt = clock.now();
    const { method, headers, body, onSent } = exchange;
    const sent = onSent === undefined ? body : reported(body ?? '', onSent);
    const response = await request(url, {
      ...{ method, headers, dispatcher: agent, signal },
      ...(sent !== undefined && { body: sent }),
    });
    const { statusCode: status } = response;
    const isGood = status >= 200 && status <= 299;
    const bytes = await readBytes(response.body, response.headers, exchange.limits).catch((error: unknown) => {
      // Of a refusal that is too large, the status says enough.
      if (isGood || !(error instanceof CatchwordError)) throw error;
      return new Uint8Array();
    });
    const receivedAt = clock.now();
    const about = { status, headers: response.headers, bytes: bytes.length, requestedAt, receivedAt };
    if (isGood) {
      return { ...about, text: await goodText(exchange, status, response.headers, bytes) };
    }
    const error = await refused(exchange, status, response.headers, bytes);
    if (!exchange.accepted.includes(status)) throw error;
    try {
      const text = await answerText(bytes, response.headers, exchange.limits, exchange.types);
      return { ...about, text, refusal: error };
    } catch {
      // A page of a proxy's own is no answer of the service: the status says more.
      throw error;
    }
  }

  async function withinTime(
    path: string,
    query: URLSearchParams | undefined,
    signal: AbortSignal,
    exchange: Exchange,
  ): Promise<Answer> {
    const url = new URL(`${base.pathname.replace(/\/$/, '')}${path}`, base);
    if (query !== undefined) url.search = query.toString();
    let isLate = false;
    const reason = (): Error => {
      isLate = true;
      return new Error('the time is over');
    };
    try {
      return await withAbort([signal], (either) => send(url, either, exchange), { timeoutMs, reason });
    } catch (error) {
      if (error instanceof CatchwordError) throw error;
      if (signal.aborted) throw givenUp();
      throw isLate ? timeoutError(exchange.kind) : connectionError(error);
    }
  }

  // A page that a cache kept shows the list as it was, and proves nothing of how it is.
  const ofCatalog = { accept: JSON_TYPE, 'content-type': JSON_TYPE, 'cache-control': 'no-cache' };
  return {
    origin: base.origin,
    hiding: hidingAll,
    get: (path, query, signal, accepted = [], keepsBytes = false) =>
      withinTime(path, query, signal, {
        method: 'GET',
        accepted,
        limits,
        types: keepsBytes ? PAGE_ANSWER : JSON_ANSWER,
        kind: 'catalog',
        identified: false,
        fields: CATALOG_FIELDS,
        onceAnswered: false,
        headers: { ...ofCatalog, ...common, ...tokenHeader() },
      }),
    send: ({ method, path, query, body, contentType, accept = JSON_TYPE, token, signal, ...asked }) =>
      withinTime(path, query, signal, {
        ...{
          method,
          body,
          types: { ...ANY_ANSWER, keepsBytes: asked.keepsBytes ?? false },
          kind: method === 'GET' ? 'read' : 'write',
          secrets: asked.secrets,
        },
        ...{ accepted: asked.accepted ?? [], identified: asked.identified ?? false },
        ...{ fields: asked.fields ?? [], onceAnswered: asked.onceAnswered ?? false, onSent: asked.onSent },
        limits: asked.limits ?? limits,
        headers: {
          ...{ accept, ...common },
          ...(contentType !== undefined && { 'content-type': contentType }),
          // What is sent piece by piece would go without.
          ...(body !== undefined && { 'content-length': `${Buffer.byteLength(body)}` }),
          ...(token ? tokenHeader() : {}),
        },
      }),
    close: async () => {
      await agent.destroy();
    },
  };
}
