import { createHmac } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import { promisify } from 'node:util';
import { askedPause } from '@catchword/base/backoff';
import { brokenAnswer } from '@catchword/base/broken-answer';
import { distrustOf } from '@catchword/base/certificate';
import { CatchwordError, messageOf, systemCodeOf } from '@catchword/base/errors';
import { httpConnector } from '@catchword/base/http-connector';
import { proxyFor } from '@catchword/base/proxy';
import { isPrivateLiteral, publicLookup } from '@catchword/base/public-address';
import { Agent, type buildConnector, request } from '@catchword/base/undici';
import { VERSION } from '@catchword/base/version';
import type { Dispatcher } from 'undici';
import type { ConnectionLife } from './connection-scope.ts';
import { SinkError, type SinkSettings } from './sink.ts';
import { BETWEEN_SECRETS, QUOTE } from './sink-options.ts';
import { withTimeout } from './with-timeout.ts';

/*
 * Requests to an address that an operator configured: webhooks of sinks and of notifications, heartbeats, and buckets. They
 * go to public addresses only, unless the address allows others, do not follow redirects, and may be signed.
 */

const MAX_RESPONSE_BYTES = 65_536;
/** How long to read the body of a response, so that its connection can be used again. */
const BODY_MS = 1_000;
const USER_AGENT = { 'user-agent': `catchword/${VERSION}` };
/** Statuses that concern the content, not the address or the state of the receiver. */
const REFUSED = new Set([400, 413, 422]);

/** The secret and the headers are for requests that post; the fragment of the address is not sent. */
export interface HttpTargetOptions
  extends Pick<SinkSettings, 'url'>,
    Partial<Pick<SinkSettings, 'secret' | 'headers' | 'proxies'>> {
  readonly timeoutMs: number;
  /** Whether private addresses are allowed, and http without TLS. */
  readonly isPrivateAllowed: boolean;
}

/** A request as it is sent. */
export interface HttpExchange {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE';
  /** Percent-encoded, with the query. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer | null;
}
export interface Posted {
  /** Each try of the same content has the same id. */
  readonly id: string;
  readonly contentType: string;
  readonly body: string | Buffer;
}

type Sign = (id: string, atSeconds: string, body: string | Buffer) => string;

/** The key of a secret. @throws CatchwordError CONFIG_INVALID unless it has the 24 to 64 bytes of Standard Webhooks */
function keyOf(secret: string): Buffer {
  const text = secret.replace(/^whsec_/, '');
  const key = Buffer.from(text, 'base64');
  // Node.js skips what is not base64: a password would become a short key, and a receiver's library another one.
  if (key.length >= 24 && key.length <= 64 && key.toString('base64') === text) return key;
  throw new CatchwordError('CONFIG_INVALID', 'its secret is not a Standard Webhooks secret', {
    hint: 'Use whsec_ followed by 24 to 64 bytes in base64. To make one: echo "whsec_$(openssl rand -base64 32)".',
  });
}

/**
 * Signs as Standard Webhooks, with each secret. Their library hashes in JavaScript, which takes seven times as long.
 * @returns null without a secret; then requests are not signed
 */
function createSigner(secret: string | undefined): Sign | null {
  if (secret === undefined) return null;
  const keys = secret.split(BETWEEN_SECRETS).map(keyOf);
  return (id, atSeconds, body) =>
    keys
      .map((key) => `v1,${createHmac('sha256', key).update(`${id}.${atSeconds}.`).update(body).digest('base64')}`)
      .join(' ');
}

/** `Name: value`, but no header that describes the body, the connection or the signature. */
const HEADER =
  /^(?!(?:content|webhook|proxy)-|(?:host|connection|keep-alive|te|trailer|transfer-encoding|upgrade|expect):)([\w!#$%&'*+.^`|~-]+):[ \t]*([\x21-\x7e][\x20-\x7e]*?)\s*$/i;

/** @throws CatchwordError CONFIG_INVALID; it names the line only, because a name may be a secret, too */
function parseHeaders(text = ''): Readonly<Record<string, string>> {
  const headers = new Map<string, string>();
  for (const [index, line] of text.split('\n').entries()) {
    const [, given = '', value = ''] = HEADER.exec(line) ?? [];
    const name = given.toLowerCase();
    if (name !== '' && !headers.has(name)) headers.set(name, value);
    else if (line.trim() !== '') {
      throw new CatchwordError('CONFIG_INVALID', `line ${index + 1} of its headers cannot be used`, {
        hint: 'Write `Name: value`, once for each header; catchword sets those of the body, the connection and the signature.',
      });
    }
  }
  return Object.fromEntries(headers);
}

function statusError(status: number, headers: IncomingHttpHeaders): SinkError {
  const message = `the receiver answered ${status}`;
  if (status === 410) return new SinkError('gone', `${message}: it does not want events any more`);
  if (REFUSED.has(status)) return new SinkError('refused', message);
  if (status >= 300 && status < 400) {
    return new SinkError('misconfigured', `${message}: redirects are not followed; use the final address`);
  }
  const timedOut = status === 408 || status === 504;
  const failure = timedOut || status === 429 || status >= 500 ? 'unavailable' : 'misconfigured';
  return new SinkError(failure, message, { timedOut, retryAfterMs: askedPause(headers, status, Date.now())?.ms });
}

/** Describes what a request threw. */
export function httpError(error: unknown): SinkError {
  // undici wraps errors of the socket and of the DNS lookup.
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  if (cause instanceof SinkError) return cause;
  // A proxy's.
  if (cause instanceof CatchwordError) {
    const failure = cause.retryable ? 'unavailable' : 'misconfigured';
    return new SinkError(failure, [cause.message, cause.hint ?? []].flat().join('. '));
  }
  const broken = brokenAnswer(cause);
  if (broken !== null) return new SinkError('unavailable', `the receiver was reached, but ${broken}`);
  const code = systemCodeOf(cause) ?? messageOf(cause);
  const distrust = distrustOf(code);
  if (distrust !== null) return new SinkError('misconfigured', distrust.text);
  const timedOut = code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT';
  return new SinkError('unavailable', `the receiver cannot be reached, or closed the connection (${code})`, {
    timedOut,
  });
}

function privateAddressError(host: string): SinkError {
  return new SinkError('misconfigured', `${host} is a private address; append #allow=private to allow it. ${QUOTE}`);
}

/** @throws CatchwordError CONFIG_INVALID; its message does not repeat the address */
function rejectUnsafe({ url, isPrivateAllowed }: HttpTargetOptions): void {
  if (url.protocol === 'http:' && !isPrivateAllowed) {
    throw new CatchwordError('CONFIG_INVALID', 'http without TLS is for private addresses only', {
      hint: `Use https, or append #allow=private. ${QUOTE}`,
    });
  }
  if (url.username !== '' || url.password !== '') {
    throw new CatchwordError('CONFIG_INVALID', 'the address contains a user name or password', {
      hint: 'Remove it; requests are signed with the secret instead.',
    });
  }
}

export type HttpTarget = ReturnType<typeof createHttpTarget>;
/** What came back, whatever its status. */
export type HttpAnswer = Awaited<ReturnType<HttpTarget['exchange']>>;

/** @throws CatchwordError CONFIG_INVALID; its message does not repeat the address */
export function createHttpTarget(options: HttpTargetOptions) {
  rejectUnsafe(options);
  const { url, secret, timeoutMs, isPrivateAllowed, proxies = {} } = options;
  const sign = createSigner(secret);
  const ownHeaders = parseHeaders(options.headers);
  const target = new URL(url);
  target.hash = '';
  const proxy = proxyFor(target, proxies);

  function connectOptions() {
    if (isPrivateAllowed) return { timeout: timeoutMs };
    if (isPrivateLiteral(target.hostname)) throw privateAddressError(target.hostname);
    return { timeout: timeoutMs, lookup: publicLookup(privateAddressError) };
  }

  /** Sends a request to the host of the address, and reads the answer. @throws SinkError if there is none */
  function ask<T>(
    agent: Agent,
    { headers, ...sent }: HttpExchange,
    signal: AbortSignal,
    read: (answer: Dispatcher.ResponseData) => T | Promise<T>,
  ): Promise<T> {
    const timeouts = { headersTimeout: timeoutMs, bodyTimeout: timeoutMs };
    const asked = { ...sent, ...timeouts, origin: target.origin, headers: { ...USER_AGENT, ...headers } };
    const answered = async (deadline: AbortSignal) => read(await request(agent, { ...asked, signal: deadline }, proxy));
    return withTimeout(timeoutMs, answered, signal).catch((error: unknown) => {
      throw httpError(error);
    });
  }

  /** Sends a request of whose answer only the status matters. @throws SinkError if it is not 2xx, or there is none */
  async function send(agent: Agent, sent: HttpExchange, signal: AbortSignal): Promise<void> {
    const { statusCode, headers, body } = await ask(agent, sent, signal, (answer) => answer);
    // A slow or endless body costs the connection.
    const dump = (deadline: AbortSignal) => body.dump({ limit: MAX_RESPONSE_BYTES, signal: deadline });
    await withTimeout(BODY_MS, dump, signal).catch(() => {});
    if (statusCode < 200 || statusCode > 299) throw statusError(statusCode, headers);
  }

  return {
    isSigned: sign !== null,
    isEncrypted: target.protocol === 'https:',
    /** Host and port of the proxy that requests go through; null if there is none. */
    proxy: proxy?.name ?? null,
    /** @param life what ends it; otherwise the caller does @throws SinkError misconfigured if the address is a private one */
    connect: (life?: ConnectionLife, connections = 1): Agent => {
      const connect = httpConnector(connectOptions(), life?.own, proxy);
      const agent = new Agent({ connections, pipelining: 1, connect });
      life?.atEnd(() => agent.destroy());
      return agent;
    },
    /** Posts to the address. @throws SinkError */
    post: async (agent: Agent, { id, contentType, body }: Posted, signal: AbortSignal): Promise<void> => {
      const atSeconds = String(Math.floor(Date.now() / 1_000));
      const headers = {
        ...ownHeaders,
        'content-type': contentType,
        'webhook-id': id,
        'webhook-timestamp': atSeconds,
        ...(sign !== null && { 'webhook-signature': sign(id, atSeconds, body) }),
      };
      await send(agent, { method: 'POST', path: `${target.pathname}${target.search}`, headers, body }, signal);
    },
    /** Reads the address, with `suffix` appended to its path. @throws SinkError */
    get: async (agent: Agent, suffix: string, signal: AbortSignal): Promise<void> => {
      const path = `${target.pathname.replace(/\/$/, '')}${suffix}${target.search}`;
      await send(agent, { method: 'GET', path }, signal);
    },
    /** Sends a request to the host of the address, and reads the whole answer. @throws SinkError if there is none */
    exchange: (agent: Agent, sent: HttpExchange, signal: AbortSignal) =>
      ask(agent, sent, signal, async ({ statusCode, headers, body }) => {
        return { status: statusCode, headers, body: Buffer.from(await body.arrayBuffer()) };
      }),
    /** Connects like a request, TLS included, but sends nothing: the receiver could take any request for an event. */
    tryToConnect: async (signal: AbortSignal): Promise<void> => {
      const { hostname, host, protocol, port } = target;
      const connect = promisify<buildConnector.Options, Socket | null>(
        httpConnector(connectOptions(), undefined, proxy),
      );
      // `tried` also destroys a socket that connects after the deadline.
      const tried = async () => (await connect({ hostname, host, protocol, port }))?.destroy();
      await withTimeout(timeoutMs, tried, signal);
    },
  };
}
