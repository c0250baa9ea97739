import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { interrupted, unlessAborted, withAbort } from '@catchword/base/abort';
import { brokenAnswer } from '@catchword/base/broken-answer';
import { distrustOf } from '@catchword/base/certificate';
import type { Clock } from '@catchword/base/clock';
import { causesOf } from '@catchword/base/connection-causes';
import { CatchwordError, hasCode, messageOf, systemCodeOf } from '@catchword/base/errors';
import { httpConnector } from '@catchword/base/http-connector';
import { isLoopback } from '@catchword/base/loopback';
import { type HttpProxy, type ProxySettings, proxyFor } from '@catchword/base/proxy';
import { hiding } from '@catchword/base/redact';
import { publish } from '@catchword/base/telemetry';
import { Agent, request } from '@catchword/base/undici';
import { VERSION } from '@catchword/base/version';
import type { SourceConfig } from '@catchword/settings/config';
import type { Answer, Prepared, Request } from './exchange.ts';
import { isGood, readResponse } from './read-response.ts';
import { BODY_LIMITS, readBytes, XML_LIMITS } from './response-body.ts';

/** Rows of option-table.ts. @rule 4.1-1, 4.1-4..5, 4.2-4, 4.4-2..3, 5-1 */
export type TransportSettings = Pick<
  SourceConfig,
  'baseUrl' | 'apiKey' | 'apiKeyHeader' | 'accessTokenHeader' | 'requestTimeoutMs' | 'concurrency'
> &
  ProxySettings & {
    /** Called when the service refuses the key or the token; it may replace them. @returns what to add to the error */
    readonly onRefused?: () => Promise<string>;
  };

export type Transport = ReturnType<typeof createTransport>;

/** A body that is read, and reported by `onSent`, only when there is a connection; it may be empty. */
function reported(body: string, onSent: () => void): Readable {
  const pieces = (function* () {
    onSent();
    yield Buffer.from(body);
  })();
  return Readable.from(pieces, { objectMode: false });
}

function contentHeaders({ format, body }: Prepared): Record<string, string> {
  const type = format === 'xml' ? 'application/xml; charset=utf-8' : 'application/json';
  return {
    accept: type,
    // Section 4.4 asks for the content type without a body, too.
    ...((body !== undefined || format !== 'xml') && { 'content-type': type }),
    ...(body !== undefined && { 'content-length': `${Buffer.byteLength(body)}` }),
    // A cached page shows an earlier state of the catalog and proves nothing about the current one.
    ...(format === 'page' && { 'cache-control': 'no-cache' }),
  };
}

function timeoutError({ format }: Request, place: string, timeoutMs: number): CatchwordError {
  return new CatchwordError('SOURCE_TIMEOUT', `${place} did not answer within ${timeoutMs / 1000} s`, {
    hint: `The service may be slow: raise {setting}${format === 'page' ? ', or read smaller pages' : ''}. Or it, or the network, is in trouble.`,
    setting: 'CATCHWORD_REQUEST_TIMEOUT',
  });
}

/** The original error is not attached: it may contain the headers of the request. */
function connectionError(error: unknown, place: string): CatchwordError {
  // undici wraps the error of the socket.
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const code = systemCodeOf(cause) ?? messageOf(error).slice(0, 80);
  const broken = brokenAnswer(cause);
  if (broken !== null) {
    const hint = `${causesOf(broken)} Ask the operator of the service, or of a proxy before it.`;
    return new CatchwordError('SOURCE_UNAVAILABLE', `${place}: ${broken}`, { hint, setting: 'CATCHWORD_BASE_URL' });
  }
  const distrust = distrustOf(code);
  const reason = distrust === null ? ` or broke off (${code})` : `: ${distrust.problem}`;
  return new CatchwordError('SOURCE_UNAVAILABLE', `${place} cannot be reached${reason}`, {
    hint: distrust?.hint ?? causesOf(code),
    setting: 'CATCHWORD_BASE_URL',
    retryable: distrust === null,
  });
}

function agentOf({ concurrency, requestTimeoutMs: timeout }: TransportSettings, proxy: HttpProxy | null) {
  const sockets = new Set<Socket>();
  const own = (socket: Socket): void => {
    sockets.add(socket.once('close', () => sockets.delete(socket)));
  };
  const agent = new Agent({
    connections: concurrency,
    pipelining: 1,
    keepAliveTimeout: 30_000,
    connect: httpConnector({ timeout }, own, proxy),
    // Our own time limit covers both; undici would report them by other codes.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  const close = async (): Promise<void> => {
    const destroyed = agent.destroy();
    // A socket that is being connected would keep the process for as long as a request may take.
    for (const socket of sockets) socket.destroy();
    await destroyed;
  };
  return { agent, close };
}

/** @param accessToken called before each request, as `settings.apiKey` is read: they may be replaced. @param jsonLimits of bodies that are not XML */
export function createTransport(
  settings: TransportSettings,
  accessToken: () => string | undefined,
  clock: Clock,
  jsonLimits = BODY_LIMITS,
) {
  const { requestTimeoutMs: timeoutMs } = settings;
  const base = new URL(settings.baseUrl);
  const { origin } = base;
  const proxy = proxyFor(base, settings);
  const place = proxy === null ? origin : `${origin} through the proxy ${proxy.name}`;
  const secrets = new Set([settings.apiKey, ...(proxy?.secrets ?? [])]);
  const { agent, close } = agentOf(settings, proxy);
  const common = {
    'user-agent': `catchword/${VERSION}`,
    // On loopback, compression costs both sides time and saves nothing.
    ...(!isLoopback(base.hostname) && { 'accept-encoding': 'gzip' }),
  };

  async function exchange(asked: Prepared, signal: AbortSignal, onSent?: () => void): Promise<Answer> {
    const { method, path, query, body } = asked;
    const limits = asked.format === 'xml' ? XML_LIMITS : jsonLimits;
    const url = new URL(`${base.pathname.replace(/\/$/, '')}${path}`, base);
    if (query !== undefined) url.search = query.toString();
    const sent = onSent === undefined ? body : reported(body ?? '', onSent);
    const token = asked.token === false ? undefined : accessToken();
    const { apiKey } = settings;
    for (const secret of [apiKey, apiKey.split(' ').at(-1), token]) if (secret !== undefined) secrets.add(secret);
    const requestedAt = clock.now();
    const sending = {
      method,
      origin,
      path: `${url.pathname}${url.search}`,
      signal,
      headers: {
        ...contentHeaders(asked),
        ...common,
        [settings.apiKeyHeader]: apiKey,
        ...(token !== undefined && { [settings.accessTokenHeader]: token }),
      },
      ...(sent !== undefined && { body: sent }),
    };
    // undici only heeds the signal once there is a connection.
    const { statusCode: status, headers, body: stream } = await unlessAborted(request(agent, sending, proxy), signal);
    const raw = await readBytes(stream, headers, limits).catch((error: unknown) => {
      // The status says enough about an error body that is too large.
      if (isGood(status) || !(error instanceof CatchwordError)) throw error;
      return new Uint8Array();
    });
    const hide = hiding(() => [...secrets, ...asked.secrets]);
    const received = { status, headers, raw, origin, hide, requestedAt, receivedAt: clock.now() };
    return await readResponse(asked, received, limits);
  }

  const login = () => ({ apiKey: settings.apiKey, token: accessToken() });

  return {
    origin,
    login,
    /**
     * The error of a request, which may be tried again if its login was replaced meanwhile, or is replaced now. Otherwise it
     * says how the key was sent: a key that is written with its scheme belongs into another header.
     */
    aboutLogin: async (refusal: CatchwordError, used: ReturnType<typeof login>): Promise<CatchwordError> => {
      if (!hasCode(refusal, 'SOURCE_AUTH', 'SERVICE_FORBIDDEN')) return refusal;
      const unread = (await settings.onRefused?.()) ?? '';
      const now = login();
      if (now.apiKey !== used.apiKey || now.token !== used.token) return refusal.with({ retryable: true });
      const error = refusal.with({ message: `${refusal.message}${unread}` });
      if (error.code !== 'SOURCE_AUTH') return error;
      const [, scheme] = /^([\w-]+) /.exec(settings.apiKey) ?? [];
      const header = `The key was sent in the header ${settings.apiKeyHeader}`;
      const advice = `${header}, behind the word ${scheme}: remove it, or choose the header Authorization for the key.`;
      const hint = (error.hint ?? '').replaceAll(error.setting ?? '{setting}', '{setting}');
      const isMisplaced = scheme !== undefined && !/^authorization$/i.test(settings.apiKeyHeader);
      return error.with({ hint: `${hint} ${isMisplaced ? advice : `${header}.`}`.trim() });
    },
    /** Masks what the service says, in an error that is made later. */
    hide: hiding(() => [...secrets]),
    /**
     * Sends exactly one request: it does not retry, and does not follow redirects.
     * @param onSent called when the request begins to be sent; before that, nothing can have been done
     * @throws CatchwordError SOURCE_*, SERVICE_*, NOT_FOUND; INTERRUPTED if `signal` aborts
     */
    send: async (asked: Prepared, signal: AbortSignal, onSent?: () => void): Promise<Answer> => {
      let isLate = false;
      const reason = (): Error => {
        isLate = true;
        return new Error('the time is over');
      };
      const knownError = (error: unknown): CatchwordError => {
        if (error instanceof CatchwordError) return error;
        if (signal.aborted) return interrupted();
        return isLate ? timeoutError(asked, place, timeoutMs) : connectionError(error, place);
      };
      const start = performance.now();
      const publishEnd = (outcome: string): void => publish({ of: 'request', outcome, ms: performance.now() - start });
      try {
        const answer = await withAbort([signal], (either) => exchange(asked, either, onSent), { timeoutMs, reason });
        publishEnd('ok');
        return answer;
      } catch (error) {
        const known = knownError(error);
        publishEnd(known.code);
        throw known;
      }
    },
    close,
  };
}
