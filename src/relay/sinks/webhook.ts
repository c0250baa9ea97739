import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import { promisify } from 'node:util';
import { Webhook } from 'standardwebhooks';
import { Agent, buildConnector, type Dispatcher, request } from 'undici';
import { z } from 'zod';
import { parseRetryAfter } from '../../backoff.ts';
import { CatchwordError, messageOf, systemCodeOf } from '../../errors.ts';
import { isPrivateLiteral, publicLookup } from '../../public-address.ts';
import { VERSION } from '../../version.ts';
import { answerWithin } from '../answer-within.ts';
import { SinkError, type SinkFactory } from '../sink.ts';
import { QUOTE, readOptions, wholeOption } from '../sink-options.ts';
import { createConnectedSink } from './connected-sink.ts';

/**
 * CloudEvents in batches (`application/cloudevents-batch+json`), signed per Standard Webhooks. A 2xx status confirms a
 * batch; any other batch is sent again, so receivers deduplicate events by their `id`.
 */

const OPTIONS = {
  batch: wholeOption(1, 10_000).default(100),
  /** Shorter than the relay's limit for a call. */
  timeout: wholeOption(1, 110).default(30),
  allow: z.enum(['private'], 'private').optional(),
};

const MAX_RESPONSE_BYTES = 65_536;
/** How long to read the body of a response, so that its connection can be used again. */
const BODY_MS = 1_000;
/** Statuses that concern the events, not the address or the state of the receiver. */
const REFUSED = new Set([400, 413, 422]);

/** @returns null without a secret; then events are not signed */
function createSigner(secret: string | undefined): Webhook | null {
  if (secret === undefined) return null;
  try {
    return new Webhook(secret);
  } catch (cause) {
    throw new CatchwordError('CONFIG_INVALID', 'its secret is not a Standard Webhooks secret', {
      hint: 'Use whsec_ followed by base64, such as the output of: openssl rand -base64 32.',
      cause,
    });
  }
}

function statusError(status: number, headers: IncomingHttpHeaders): SinkError {
  const message = `the receiver answered ${status}`;
  if (status === 410) return new SinkError('gone', `${message}: it does not want events any more`);
  if (REFUSED.has(status)) return new SinkError('refused', message);
  if (status >= 300 && status < 400) {
    return new SinkError('misconfigured', `${message}: redirects are not followed; use the final address`);
  }
  const [retryAfter] = [headers['retry-after']].flat();
  const retryAfterMs = parseRetryAfter(retryAfter, Date.now())?.ms;
  const failure = status === 408 || status === 429 || status >= 500 ? 'unavailable' : 'misconfigured';
  return new SinkError(failure, message, retryAfterMs === undefined ? {} : { retryAfterMs });
}

function toSinkError(error: unknown): SinkError {
  // undici wraps errors of the socket and of the DNS lookup.
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  if (cause instanceof SinkError) return cause;
  const code = systemCodeOf(cause) ?? messageOf(cause);
  return new SinkError('unavailable', `the receiver cannot be reached, or closed the connection (${code})`);
}

function privateAddressError(host: string): SinkError {
  return new SinkError('misconfigured', `${host} is a private address; append #allow=private to allow it. ${QUOTE}`);
}

export const createWebhookSink: SinkFactory = ({ url, secret }) => {
  const options = readOptions(url, OPTIONS);
  const isPrivateAllowed = options.allow === 'private';
  if (url.protocol === 'http:' && !isPrivateAllowed) {
    throw new CatchwordError('CONFIG_INVALID', 'webhook+http is for private addresses only', {
      hint: `Use webhook+https, or append #allow=private. ${QUOTE}`,
    });
  }
  if (url.username !== '' || url.password !== '') {
    throw new CatchwordError('CONFIG_INVALID', 'the address contains a user name or password', {
      hint: 'Remove it; requests are signed with the secret instead.',
    });
  }
  const signer = createSigner(secret);
  const target = new URL(url);
  target.hash = '';
  const timeoutMs = options.timeout * 1_000;

  function connectOptions() {
    if (isPrivateAllowed) return { timeout: timeoutMs };
    if (isPrivateLiteral(target.hostname)) throw privateAddressError(target.hostname);
    return { timeout: timeoutMs, lookup: publicLookup(privateAddressError) };
  }

  /** Connects like a delivery, TLS included, but sends nothing: the receiver could take any request for an event. */
  async function tryToConnect(signal: AbortSignal): Promise<void> {
    const { hostname, host, protocol, port } = target;
    const connect = promisify<buildConnector.Options, Socket | null>(buildConnector(connectOptions()));
    // It also destroys a socket that connects after the deadline.
    const tried = async () => (await connect({ hostname, host, protocol, port }))?.destroy();
    await answerWithin(timeoutMs, tried, signal);
  }

  async function post(agent: Agent, id: string, body: string, signal: AbortSignal): Promise<Dispatcher.ResponseData> {
    const now = new Date();
    const headers = {
      'content-type': 'application/cloudevents-batch+json; charset=utf-8',
      'user-agent': `catchword/${VERSION}`,
      'webhook-id': id,
      'webhook-timestamp': String(Math.floor(now.getTime() / 1_000)),
      ...(signer !== null && { 'webhook-signature': signer.sign(id, now, body) }),
    };
    const timeouts = { headersTimeout: timeoutMs, bodyTimeout: timeoutMs };
    const response = await answerWithin(
      timeoutMs,
      (deadline) =>
        request(target, { method: 'POST', dispatcher: agent, headers, body, ...timeouts, signal: deadline }),
      signal,
    );
    // Only the status matters. A slow or endless body costs the connection.
    const dump = (deadline: AbortSignal) => response.body.dump({ limit: MAX_RESPONSE_BYTES, signal: deadline });
    await answerWithin(BODY_MS, dump, signal).catch(() => {});
    return response;
  }

  return createConnectedSink({
    batch: { events: options.batch, chars: 4_000_000 },
    connect: async () => new Agent({ connections: 1, pipelining: 1, connect: connectOptions() }),
    disconnect: (agent) => agent.destroy(),
    open: async (agent) => ({
      position: null,
      deliver: async (events, { incarnation, generation }, signal) => {
        const seqs = `${events[0]?.seq ?? 0}-${events.at(-1)?.seq ?? 0}`;
        const body = `[${events.map(({ text }) => text).join(',')}]`;
        const { statusCode, headers } = await post(agent, `${incarnation}:${generation}:${seqs}`, body, signal);
        if (statusCode < 200 || statusCode > 299) throw statusError(statusCode, headers);
      },
    }),
    check: async (_, signal) => {
      await tryToConnect(signal);
      const certificate = target.protocol === 'https:' ? ', and its certificate is valid' : '';
      const unsigned = signer === null ? '; without a secret, events are not signed' : '';
      return `can be reached${certificate}; no request was sent, so its responses were not checked${unsigned}`;
    },
    toSinkError,
  });
};
