import { Agent, request } from 'undici';
import type { Clock } from '../clock.ts';
import { CatchwordError, messageOf } from '../errors.ts';
import { VERSION } from '../version.ts';
import { BODY_LIMITS, type BodyLimits, type Headers, jsonText, readBytes, toText } from './body.ts';
import { refusal } from './refusal.ts';

export interface TransportOptions {
  /** `{base_url}`; may have a path. */
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly accessToken: string | undefined;
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
  /** Over the wire. */
  readonly bytes: number;
  /** Local clock, milliseconds since 1970. */
  readonly requestedAt: number;
  readonly receivedAt: number;
}

export interface Transport {
  /**
   * Exactly one GET request; nothing is tried again, no redirect is followed.
   * @param accepted statuses besides 2xx that are an answer and no error
   * @throws CatchwordError SOURCE_*; INTERRUPTED when `signal` aborts
   */
  get(path: string, query: URLSearchParams, signal: AbortSignal, accepted?: readonly number[]): Promise<Answer>;
  close(): Promise<void>;
}

/** Certificates do not get better by asking again. */
const CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ERR_TLS/;

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127\./.test(hostname);
}

/** The innermost code: undici wraps what the socket said. */
function codeOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return cause instanceof Error && 'code' in cause ? String(cause.code) : messageOf(error).slice(0, 80);
}

export function createTransport(options: TransportOptions): Transport {
  const { baseUrl, apiKey, accessToken, timeoutMs, clock, limits = BODY_LIMITS } = options;
  const base = new URL(baseUrl);
  const secrets = [apiKey, ...(accessToken === undefined ? [] : [accessToken])];
  const agent = new Agent({
    connections: options.connections,
    pipelining: 1,
    keepAliveTimeout: 30_000,
    connect: { timeout: timeoutMs },
    // The deadline covers both; undici's own would only report it under another name.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  const headers = {
    accept: 'application/json',
    'content-type': 'application/json',
    'user-agent': `catchword/${VERSION}`,
    // On loopback, compression costs both sides time and saves nothing.
    ...(!isLoopback(base.hostname) && { 'accept-encoding': 'gzip' }),
    [options.apiKeyHeader]: apiKey,
    ...(accessToken !== undefined && { [options.accessTokenHeader]: accessToken }),
  };

  /** A service may repeat what it was sent. */
  function withoutSecrets(text: string): string {
    return secrets.reduce((clean, secret) => clean.replaceAll(secret, '[secret]'), text);
  }

  /** What the network did. The error itself is left behind: it may hold the request with its headers. */
  function connectionError(error: unknown, deadline: AbortSignal): CatchwordError {
    if (deadline.aborted) {
      return new CatchwordError('SOURCE_TIMEOUT', `${base.origin} did not answer within ${timeoutMs / 1000} s`, {
        hint: 'Raise CATCHWORD_REQUEST_TIMEOUT, or read smaller pages with CATCHWORD_PER_PAGE.',
      });
    }
    const code = codeOf(error);
    return new CatchwordError('SOURCE_UNAVAILABLE', `${base.origin} cannot be reached or broke off (${code})`, {
      hint: 'Check CATCHWORD_BASE_URL and the network; the service may be down.',
      retryable: !CERTIFICATE.test(code),
    });
  }

  async function exchange(url: URL, signal: AbortSignal, accepted: readonly number[]): Promise<Answer> {
    const requestedAt = clock.now();
    const response = await request(url, { method: 'GET', headers, dispatcher: agent, signal });
    const bytes = await readBytes(response.body, response.headers, limits);
    const { statusCode: status } = response;
    const receivedAt = clock.now();
    if ((status < 200 || status > 299) && !accepted.includes(status)) {
      let text = '';
      try {
        text = toText(bytes);
      } catch {
        // The status says enough.
      }
      throw refusal(status, response.headers, withoutSecrets(text), base.origin, receivedAt);
    }
    const text = await jsonText(bytes, response.headers, limits);
    return { status, headers: response.headers, text, bytes: bytes.length, requestedAt, receivedAt };
  }

  return {
    get: async (path, query, signal, accepted = []) => {
      const url = new URL(`${base.pathname.replace(/\/$/, '')}${path}`, base);
      url.search = query.toString();
      const deadline = AbortSignal.timeout(timeoutMs);
      try {
        return await exchange(url, AbortSignal.any([signal, deadline]), accepted);
      } catch (error) {
        if (error instanceof CatchwordError) throw error;
        if (signal.aborted) throw new CatchwordError('INTERRUPTED', 'the request was given up');
        throw connectionError(error, deadline);
      }
    },
    close: async () => {
      await agent.destroy();
    },
  };
}
